"""Spreads, and means with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from scipy import stats

CONFIDENCE = 0.95
SIGNIFICANCE = 0.05  # not 1 - CONFIDENCE, which is a little more in floating point


def spread(values: Sequence[float]) -> float | None:
    """The standard deviation (n - 1) over seeds; None for one seed, and where a value is infinite."""
    return stdev(values) if len(values) > 1 and all(map(math.isfinite, values)) else None


class Mean(NamedTuple):
    """A mean with the ends of its 95% interval, None where there is one value alone."""

    value: float
    low: float | None
    high: float | None


def mean_interval(values: Sequence[float]) -> Mean:
    """The mean of one or more finite `values`, with t · s / √n on both sides of it: t is the 97.5% quantile of
    Student's distribution of n − 1 degrees of freedom."""
    mean = fmean(values)
    if len(values) < 2:
        return Mean(mean, None, None)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return Mean(mean, mean - half, mean + half)


def common(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """What two intervals share; `one` where they contradict each other."""
    low, high = max(one[0], other[0]), min(one[1], other[1])
    return (low, high) if low <= high else one
