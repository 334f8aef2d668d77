"""Checks that the schedules share: what a learning rate and a number of steps may be."""

from __future__ import annotations


def positive(**values: float) -> None:
    """Raises ValueError for the first of `values` that is not above 0."""
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"`{name}` must be positive, but is {value}")


def not_negative(**values: float) -> None:
    """Raises ValueError for the first of `values` that is below 0."""
    for name, value in values.items():
        if not value >= 0:
            raise ValueError(f"`{name}` must not be negative, but is {value}")


def floor_below_peak(floor: float, peak: float) -> None:
    """Raises ValueError where the lowest learning rate is above the highest."""
    if floor > peak:
        raise ValueError(f"`floor` must not be above `peak`, but {floor} is above {peak}")
