"""The sinusoid of a position, which several encodings use."""

from __future__ import annotations

import math

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_tfm.validators import positive


class Sinusoid(nn.Layer):
    """PE(p, 2i) = sin(p / base^(2i / C)), PE(p, 2i + 1) = cos(p / base^(2i / C)), of any integers, negative ones too.

    positions [...] → float64 [..., C]. With an odd C the last channel is a sine without its cosine.

    Raises:
        ValueError: `base` is not positive.
    """

    def __init__(self, width: int, base: float):
        super().__init__()
        positive(base=base)
        self.base = base
        channel = np.arange(width)
        frequency = float(base) ** (-(channel // 2 * 2) / width)
        self.register_buffer("frequency", paddle.to_tensor(frequency), persistable=False)  # float64 [C]
        self.register_buffer(
            "phase", paddle.to_tensor(channel % 2 * (math.pi / 2)), persistable=False
        )  # cos: sin + π/2

    def forward(self, positions: Tensor) -> Tensor:
        return paddle.sin(positions.unsqueeze(-1).astype(self.frequency.dtype) * self.frequency + self.phase)

    def extra_repr(self) -> str:
        return f"{self.frequency.shape[0]}, base={self.base:g}"
