"""The sections of the page, a file each: `html(comparison)` is what stands below its heading."""
