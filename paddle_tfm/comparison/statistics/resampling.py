"""Differences over draws of a test set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from paddle_tfm.comparison.statistics.intervals import CONFIDENCE, SIGNIFICANCE

MAX_COUNTS = 4_000_000  # in memory at a time


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
