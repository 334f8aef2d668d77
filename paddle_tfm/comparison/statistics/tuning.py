"""Quality against tuning: what the best of k trials may be expected to score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special


def expected_best(scores: Sequence[float], higher_is_better: bool = True) -> np.ndarray:
    """The expected best of k random trials for k = 1 … n, from the n `scores` of random trials: float64 [n].

    With x_(1) ≤ … ≤ x_(n), the mean of the best over all sets of k different trials,

        V(k) = Σ_i C(i − 1, k − 1) / C(n, k) · x_(i),

    is unbiased (Tang et al., arXiv:2004.13705). Drawing trials with replacement, as in arXiv:1909.03004, is too low.
    A trial that diverged counts as the worst of the others (NaN → their worst), which keeps its place in the order.

    Raises:
        ValueError: no score is a number.
    """
    values = np.asarray(scores, dtype=np.float64) * (1 if higher_is_better else -1)
    if not np.isfinite(values).any():
        raise ValueError("the expected best of trials needs a trial with a score")
    values = np.sort(np.where(np.isfinite(values), values, values[np.isfinite(values)].min()))
    n = len(values)
    k, i = np.arange(1, n + 1)[:, None], np.arange(1, n + 1)[None, :]
    weights = np.where(i >= k, np.exp(_log_binomial(i - 1, k - 1) - _log_binomial(n, k)), 0.0)
    return weights @ values * (1 if higher_is_better else -1)


def _log_binomial(n: np.ndarray | int, k: np.ndarray) -> np.ndarray:
    n, k = np.broadcast_arrays(n, np.minimum(k, n))
    return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
