"""A comparison as a page, and as files for a paper."""
