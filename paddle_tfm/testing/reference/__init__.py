"""A component beside its author's own formula: `plugin check --reference`."""
