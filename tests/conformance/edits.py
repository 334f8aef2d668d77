"""Right sources made wrong, by one edit each."""


def edited(text: str, was: str, becomes: str, what: object) -> str:
    """`text` with `becomes` in the place of `was`. Raises ValueError, which names `what`, unless `was` is there once."""
    if text.count(was) != 1:
        raise ValueError(f"{what}: the source has {was!r} {text.count(was)} times")
    return text.replace(was, becomes)
