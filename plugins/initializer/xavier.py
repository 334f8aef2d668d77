"""Uniform values whose variance keeps signals and gradients at their size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddle_tfm.protocols import Initializer


class Xavier(Initializer):
    """Weights uniform in ±sqrt(6 / (fan_in + fan_out)), tables normal with deviation 1/sqrt(width), Glorot and Bengio
    2010.

    The fans are the last two dimensions: a parameter [E, in, out] holds E matrices. The width of a table is its last.
    """

    def draw(self, rng: np.random.Generator, shape: Sequence[int], role: str) -> np.ndarray:
        if role == "embedding":
            return rng.standard_normal(shape, dtype=np.float32) * np.float32(shape[-1] ** -0.5)
        bound = np.float32((6.0 / (shape[-2] + shape[-1])) ** 0.5)
        return (2 * rng.random(shape, dtype=np.float32) - 1) * bound
