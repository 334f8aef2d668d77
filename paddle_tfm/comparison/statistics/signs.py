"""Pairs of which a run has no value: it diverged or failed, and is worse than every run that has one.

A difference is then −inf (the first has none) or +inf (the second has none), and NaN where neither has. What remains of
such a pair is who won it. Where a variant changes nothing, either order is equally likely whatever the values look
like, so that the exact sign test holds for outcomes of every shape.
"""

from __future__ import annotations

import numpy as np
from scipy import stats


def complete(differences: np.ndarray) -> np.ndarray:
    """Whether all of `differences` [..., pairs] have two values: bool [...]."""
    return np.isfinite(differences).all(-1)


def won_and_lost(differences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs above and below 0 [...]; pairs that are even or have no value at all decide nothing."""
    return (differences > 0).sum(-1), (differences < 0).sum(-1)


def sign_p(won: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """The two-sided p-value min(1, 2 P(B ≤ min(won, lost))) with B ~ Binomial(won + lost, ½)."""
    return np.minimum(1, 2 * stats.binom.cdf(np.minimum(won, lost), won + lost, 0.5))


def sign_interval(differences: np.ndarray, level: float) -> tuple[float, float]:
    """The interval of the median of `differences` [pairs] that the sign test at `level` does not reject: its j-th
    smallest to its j-th largest, with the largest j at which 2 P(B < j) ≤ level; ±inf where no j does."""
    ordered = np.sort(differences[~np.isnan(differences)])
    rank = 0
    while rank < len(ordered) // 2 and 2 * stats.binom.cdf(rank, len(ordered), 0.5) <= level:
        rank += 1
    return (float(ordered[rank - 1]), float(ordered[-rank])) if rank else (-np.inf, np.inf)


def worst_value(values: np.ndarray, higher_is_better: bool, bound: float) -> float:
    """What a run without a value counts in a mean by which variants are ranked: the worst that the metric can be
    (`bound`), and where it has no such bound the worst of all `values` of the comparison; NaN if there is none."""
    if np.isfinite(bound):
        return float(bound)
    known = values[np.isfinite(values)]
    return float((known.min() if higher_is_better else known.max()) if len(known) else np.nan)
