"""Rotary positions: queries and keys turned by their position."""

from __future__ import annotations

from paddle import Tensor

from paddle_tfm.protocols import PositionalEncoding
from paddle_tfm_plugins.position._rotation import frequencies, rotate


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
        self.base = base
        self.register_buffer("frequency", frequencies(head_dim, base), persistable=False)  # float64 [D/2]

    def query(self, q: Tensor, positions: Tensor) -> Tensor:
        return self._turn(q, positions)

    def key(self, k: Tensor, positions: Tensor) -> Tensor:
        return self._turn(k, positions)

    def _turn(self, x: Tensor, positions: Tensor) -> Tensor:
        return rotate(x, positions.unsqueeze([1, -1]).astype(self.frequency.dtype) * self.frequency)

    def extra_repr(self) -> str:
        return f"{2 * self.frequency.shape[0]}, base={self.base:g}"

    def to_ctranslate2(self) -> dict:
        return {"rotary_base": self.base}
