"""Uniform values between two bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddle_tfm.language import _
from paddle_tfm.protocols import Initializer


class Uniform(Initializer):
    """Every weight and table uniform between `low` and `high`."""

    def __init__(self, low: float = -0.1, high: float = 0.1):
        if not low < high:
            raise ValueError(_("`low` must be below `high`, but {low} is not below {high}").format(low=low, high=high))
        self.low, self.high = low, high

    def draw(self, rng: np.random.Generator, shape: Sequence[int], role: str) -> np.ndarray:
        return np.float32(self.low) + np.float32(self.high - self.low) * rng.random(shape, dtype=np.float32)
