"""Spreads, and paired differences with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy import stats

CONFIDENCE = 0.95
SIGNIFICANCE = 0.05  # not 1 - CONFIDENCE, which is a little more in floating point


@dataclass
class Difference:
    """A variant minus the baseline, paired by seed: mean, and the half-width of its 95% interval (Student's t). `low`
    and `high` are the ends of that interval within what a difference can be; None for one pair, which has none."""

    mean: float
    half_width: float | None
    pairs: int
    verdict: str
    low: float | None = None
    high: float | None = None


def spread(values: Sequence[float]) -> float | None:
    """The standard deviation (n - 1) over seeds; None for one seed, and where a value is infinite."""
    return stdev(values) if len(values) > 1 and all(map(math.isfinite, values)) else None


def paired_difference(
    differences: Sequence[float], higher_is_better: bool, largest: float = math.inf
) -> Difference | None:
    """The mean of `differences`, one a seed; those that are no finite numbers are left out, None if none is left.

    The half-width of the interval is t · s / √n, with the 97.5% quantile t of Student's distribution of n − 1 degrees
    of freedom. The verdict is `better` or `worse` only where the interval excludes 0, `equal` where every difference is
    0, and otherwise `undetermined`: too few seeds, or too noisy, to tell.

    Args:
        largest: how far two values of the metric can be apart (1 for a share). The interval ends there, which changes
            neither the verdict nor how often it holds the truth, for beyond there is nothing to hold.
    """
    values = [value for value in differences if math.isfinite(value)]
    if not values:
        return None
    mean, half = fmean(values), None
    if len(values) > 1:
        half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    if half is None or (abs(mean) <= half and any(values)):
        verdict = "undetermined"
    elif not any(values):
        verdict = "equal"
    else:
        verdict = "better" if (mean > 0) == higher_is_better else "worse"
    if half is None:
        return Difference(mean, half, len(values), verdict)
    return Difference(mean, half, len(values), verdict, max(mean - half, -largest), min(mean + half, largest))


def common(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """What two intervals share; `one` where they contradict each other."""
    low, high = max(one[0], other[0]), min(one[1], other[1])
    return (low, high) if low <= high else one
