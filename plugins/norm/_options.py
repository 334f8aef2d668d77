"""Checks of the options that norms share."""

from __future__ import annotations


def positive(name: str, value: float) -> float:
    """The option as it is.

    Raises:
        ValueError: it is not greater than 0.
    """
    if not value > 0.0:
        raise ValueError(f"`{name}` must be positive, but is {value}")
    return value


def share(name: str, value: float) -> float:
    """The option as it is.

    Raises:
        ValueError: it is not in (0, 1].
    """
    if not 0.0 < value <= 1.0:
        raise ValueError(f"`{name}` must be in (0, 1], but is {value}")
    return value
