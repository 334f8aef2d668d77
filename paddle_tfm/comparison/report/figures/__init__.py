"""The figures of a report, each with one description: drawn on the page, and by matplotlib for a paper."""
