"""Several variants against one baseline: Holm's method."""

from __future__ import annotations

import numpy as np


def holm(p: np.ndarray) -> np.ndarray:
    """Adjusted p-values of `p` [..., variants] (Holm 1979), in the same places: with p_(1) ≤ … ≤ p_(m),

        adjusted p_(j) = max over i ≤ j of min(1, (m − i + 1) p_(i)).

    Those that are at most α may all be called different: the probability of one wrong among them is at most α, however
    the variants depend on each other; and they do, for they share the baseline.
    """
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p, axis=-1, kind="stable")
    steps = np.arange(p.shape[-1], 0, -1)
    ascending = np.minimum(1, np.maximum.accumulate(np.take_along_axis(p, order, -1) * steps, -1))
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, ascending, -1)
    return adjusted


def holm_levels(p: np.ndarray, level: float) -> np.ndarray:
    """The level at which Holm's method tests each of `p` [variants]: level / (m − j + 1) for the one it rejects at step
    j, level / m for all that it does not reject (which none of the wider levels would reject either)."""
    adjusted, count = holm(p), len(p)
    steps = np.argsort(np.argsort(p, kind="stable"), kind="stable")
    return np.where(adjusted <= level, level / (count - steps), level / max(count, 1))
