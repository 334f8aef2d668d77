"""The sinusoid of a position, which several encodings use."""

from __future__ import annotations

import math

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm import place
from paddle_tfm.validators import positive

MAX_ROWS = 4096  # rows that are kept at most: two megabytes for 128 channels


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
        self._tables: dict[tuple, Tensor] = {}  # PE of 0, 1, … by dtype

    def forward(self, positions: Tensor) -> Tensor:
        return paddle.sin(positions.unsqueeze(-1).astype(self.frequency.dtype) * self.frequency + self.phase)

    def waves(self, positions: Tensor, x: Tensor) -> Tensor:
        """PE in the shape and dtype of x [B, T, C], positions [B|1, T]. On a CPU a single position, a step of decoding,
        is looked up: a quarter of the time."""
        single = math.prod(positions.shape) == 1 and place.on_cpu(positions)
        waves = self._look_up(positions, x.dtype) if single else None
        waves = self(positions).astype(x.dtype) if waves is None else waves
        return waves if waves.shape == x.shape else waves.expand(x.shape)  # a CPU adds [1, T, C] 15 times as slowly

    def _look_up(self, position: Tensor, dtype: paddle.dtype) -> Tensor | None:
        """The row of a table that is as long as the largest position so far; None where it does not reach."""
        number = position.item()
        if not 0 <= number < MAX_ROWS:
            return None
        table = self._tables.get((dtype, self.frequency.dtype))
        if table is None or table.shape[0] <= number:
            rows = min(MAX_ROWS, max(64, 2 * number))
            with paddle.no_grad():
                table = self(paddle.arange(rows)).astype(dtype)  # [rows, C]
            self._tables[dtype, self.frequency.dtype] = table
        return F.embedding(position, table)

    def extra_repr(self) -> str:
        return f"{self.frequency.shape[0]}, base={self.base:g}"
