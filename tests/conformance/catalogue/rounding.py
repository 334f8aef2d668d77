"""Numbers that lose half of their digits on the way."""


def through(dtype: str, value: str) -> str:
    """The source of a value that goes through another dtype."""
    return f"{value}.astype('{dtype}').astype({value}.dtype)"
