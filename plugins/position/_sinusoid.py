"""The sinusoid of a position, which several encodings use."""

from __future__ import annotations

import math

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_tfm.validators import positive

MAX_ROWS = 1024  # rows of single positions that are kept: half a megabyte for 128 channels


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
        self._rows: dict[tuple, Tensor] = {}  # by position and dtype: those of single tokens, a step of decoding each

    def forward(self, positions: Tensor) -> Tensor:
        return paddle.sin(positions.unsqueeze(-1).astype(self.frequency.dtype) * self.frequency + self.phase)

    def waves(self, positions: Tensor, x: Tensor) -> Tensor:
        """PE in the shape and dtype of x [B, T, C], positions [B|1, T]."""
        if positions.size > 1 or not positions.place.is_cpu_place():
            return self(positions).astype(x.dtype).expand(x.shape)  # a CPU adds [1, T, C] 15 times as slowly
        key = positions.item(), x.dtype, self.frequency.dtype
        row = self._rows.get(key)
        if row is None:
            row = self(positions).astype(x.dtype)  # [1, 1, C]
            if len(self._rows) < MAX_ROWS:
                self._rows[key] = row
        return row if x.shape[0] == 1 else row.expand(x.shape)

    def extra_repr(self) -> str:
        return f"{self.frequency.shape[0]}, base={self.base:g}"
