"""Normal values of one deviation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddle_tfm.protocols import Initializer
from paddle_tfm.validators import positive


class Normal(Initializer):
    """Every weight and table normal with mean 0 and one standard deviation `std`."""

    def __init__(self, std: float = 0.02):
        positive(std=std)
        self.std = std

    def draw(self, rng: np.random.Generator, shape: Sequence[int], role: str) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32) * np.float32(self.std)
