"""Sinusoidal positions, as in the original Transformer."""

from __future__ import annotations

import math

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.protocols import PositionalEncoding


class Sinusoidal(PositionalEncoding):
    """Sines and cosines of the position, added to the embeddings (arXiv:1706.03762, section 3.5).

    PE(p, 2i) = sin(p / base^(2i / C)), PE(p, 2i + 1) = cos(p / base^(2i / C)): sine and cosine take turns. With an odd C
    the last channel is a sine without its cosine. Any integer position; the angles are computed in float64.

    x [B, T, C], positions [B|1, T] → x + PE [B, T, C].

    Options: `base` sets the longest wavelength, about 2π · base.

    Raises:
        ValueError: `base` is not positive.
    """

    def __init__(self, d_model: int, base: float = 10000.0):
        super().__init__()
        if not base > 0.0:
            raise ValueError(f"`base` must be positive, but is {base}")
        self.base = base
        channel = np.arange(d_model)
        frequency = float(base) ** (-(channel // 2 * 2) / d_model)
        self.register_buffer("frequency", paddle.to_tensor(frequency), persistable=False)  # float64 [C]
        self.register_buffer(
            "phase", paddle.to_tensor(channel % 2 * (math.pi / 2)), persistable=False
        )  # cos: sin + π/2

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        angle = positions.unsqueeze(-1).astype(self.frequency.dtype) * self.frequency + self.phase  # [B|1, T, C]
        return x + paddle.sin(angle).astype(x.dtype).expand(x.shape)  # a CPU adds [1, T, C] fifteen times as slowly

    def extra_repr(self) -> str:
        return f"{self.frequency.shape[0]}, base={self.base:g}"
