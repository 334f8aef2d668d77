"""The sinusoid of a position, which several encodings use."""

from __future__ import annotations

import math

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_tfm.language import _
from paddle_tfm.validators import positive


class Sinusoid(nn.Layer):
    """PE(p, 2i) = sin(p / base^(2i / C)), PE(p, 2i + 1) = cos(p / base^(2i / C)), of any integers, negative ones too.
    In `halves`: PE(p, i) = sin(p / base^(i / (C/2 − 1))), PE(p, C/2 + i) = cos(p / base^(i / (C/2 − 1))).

    positions [...] → float64 [..., C]. With an odd C the last channel is a sine without its cosine.

    Raises:
        ValueError: `base` is not positive; C is odd or below 4, in `halves`.
    """

    def __init__(self, width: int, base: float, halves: bool = False):
        super().__init__()
        positive(base=base)
        if halves and (width % 2 or width < 4):
            raise ValueError(_("`halves` needs an even d_model of 4 or more, but it is {width}").format(width=width))
        channel, half = np.arange(width), width // 2
        exponent = channel % half / (half - 1) if halves else channel // 2 * 2 / width
        is_cosine = channel // half if halves else channel % 2
        self.register_buffer("frequency", paddle.to_tensor(float(base) ** -exponent), persistable=False)  # float64 [C]
        self.register_buffer("phase", paddle.to_tensor(is_cosine * (math.pi / 2)), persistable=False)  # cos: sin + π/2

    def forward(self, positions: Tensor) -> Tensor:
        return paddle.sin(positions.unsqueeze(-1).astype(self.frequency.dtype) * self.frequency + self.phase)

    def waves(self, positions: Tensor, x: Tensor) -> Tensor:
        """PE in the shape and dtype of x [B, T, C], positions [B|1, T]."""
        waves = self(positions).astype(x.dtype)
        return waves if waves.shape == x.shape else waves.expand(x.shape)  # a CPU adds [1, T, C] 15 times as slowly
