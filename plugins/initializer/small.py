"""Small normal values, the same for every matrix of a width."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddle_tfm.protocols import Initializer


class Small(Initializer):
    """SmallInit: every weight and table normal with deviation sqrt(2 / (5 d_model)) (Nguyen 2019, arXiv:1910.05895).

    That is Xavier's deviation, sqrt(2 / (fan_in + fan_out)), for the matrix [d_model, 4 d_model] of a feed-forward; all
    others, and those of attention above all, start smaller than Xavier's.
    """

    def __init__(self, d_model: int):
        self.std = (2.0 / (5 * d_model)) ** 0.5

    def draw(self, rng: np.random.Generator, shape: Sequence[int], role: str) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32) * np.float32(self.std)
