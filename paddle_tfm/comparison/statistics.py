"""What numbers say: spreads, paired differences and their intervals. Pure functions of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
SIGNIFICANCE = 0.05  # not 1 - CONFIDENCE, which is a little more in floating point
MAX_COUNTS = 4_000_000  # in memory at a time


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


def draw_counts(size: int, draws: int, seed: int) -> Iterator[np.ndarray]:
    """How often each of `size` examples is in each of `draws` draws of `size` with replacement, int64 [some draws,
    size] at a time."""
    generator = np.random.default_rng(seed)
    rows = max(1, MAX_COUNTS // size)
    for start in range(0, draws, rows):
        yield generator.multinomial(size, np.full(size, 1 / size), min(rows, draws - start))


@dataclass(frozen=True)
class ResampledDifference:
    """The differences d of n draws of the test set: `low` and `high` are their quantiles 2.5% and 97.5%, and

        p = min(1, 2 · (1 + min(#{d ≤ 0}, #{d ≥ 0})) / (1 + n)),

    twice the share of draws in which the systems are even or in the other order: two-sided, for neither was expected to
    be better. Koehn counts the draws that one system wins; the ones added keep p from being 0, which no finite number
    of draws can show (Davison and Hinkley 1997, section 4.2). The verdict is `better` or `worse` where p < 5%, `equal`
    where no draw tells the two apart, and else `undetermined`.
    """

    low: float
    high: float
    p: float
    verdict: str


def resampled_difference(differences: np.ndarray, higher_is_better: bool) -> ResampledDifference:
    """What the differences [draws] between two systems say."""
    low, high = np.quantile(differences, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]).tolist()
    other_order = min((differences <= 0).sum(), (differences >= 0).sum())
    p = min(1.0, 2 * (1 + int(other_order)) / (1 + len(differences)))
    if not differences.any():
        verdict = "equal"
    elif p >= SIGNIFICANCE:
        verdict = "undetermined"
    else:
        verdict = "better" if (np.median(differences) > 0) == higher_is_better else "worse"
    return ResampledDifference(low, high, p, verdict)
