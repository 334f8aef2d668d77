"""Rotary positions: queries and keys turned by their position."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.protocols import PositionalEncoding


class Rotary(PositionalEncoding):
    """Queries and keys rotated by their position, so that scores depend on differences only (arXiv:2104.09864).

    Neighbouring channels (2i, 2i + 1) are a complex number, turned by p · base^(−2i / D): the paper's interleaved
    convention (the half-split one, of channels (i, i + D/2), is the same under a fixed permutation of channels).

    q, k [B, H, T, D], positions [B|1, T] → [B, H, T, D]. Any integer position; the angles are computed in float64.

    Options: `base` sets the longest wavelength, about 2π · base.

    Raises:
        ValueError: `head_dim` is odd, or `base` is not positive.
    """

    def __init__(self, head_dim: int, base: float = 10000.0):
        super().__init__()
        if head_dim % 2 != 0:
            raise ValueError(f"`head_dim` must be even, but is {head_dim}")
        if not base > 0.0:
            raise ValueError(f"`base` must be positive, but is {base}")
        self.base = base
        frequency = float(base) ** (-np.arange(0, head_dim, 2) / head_dim)
        self.register_buffer("frequency", paddle.to_tensor(frequency), persistable=False)  # float64 [D/2]

    def query(self, q: Tensor, positions: Tensor) -> Tensor:
        return self._turn(q, positions)

    def key(self, k: Tensor, positions: Tensor) -> Tensor:
        return self._turn(k, positions)

    def _turn(self, x: Tensor, positions: Tensor) -> Tensor:
        """As complex numbers: on a CPU that is one product, a third of the time of four real ones."""
        dtype = x.dtype if x.dtype == paddle.float64 else paddle.float32
        angle = positions.unsqueeze([1, -1]).astype(self.frequency.dtype) * self.frequency  # [B|1, 1, T, D/2]
        turn = paddle.complex(paddle.cos(angle).astype(dtype), paddle.sin(angle).astype(dtype))
        pairs = x.reshape([*x.shape[:-1], -1, 2])  # [B, H, T, D] -> [B, H, T, D/2, 2]
        turned = paddle.as_real(paddle.as_complex(pairs.astype(dtype)) * turn)
        return turned.reshape(x.shape).astype(x.dtype)  # [B, H, T, D/2, 2] -> [B, H, T, D]

    def extra_repr(self) -> str:
        return f"{2 * self.frequency.shape[0]}, base={self.base:g}"
