"""Rotary positions: queries and keys turned by their position."""

from __future__ import annotations

from paddle import Tensor, concat

from paddle_tfm.language import _
from paddle_tfm.protocols import PositionalEncoding
from paddle_tfm.validators import between
from paddle_tfm_plugins.position._rotation import frequencies, rotate


class Rotary(PositionalEncoding):
    """Queries and keys rotated by their position, so that scores depend on differences only (arXiv:2104.09864).

    Neighbouring channels (2i, 2i + 1) are a complex number, turned by p · base^(−2i / R): the paper's interleaved
    convention (the half-split one, of channels (i, i + R/2), is the same under a fixed permutation of channels). R, the
    number of channels that turn, is D, or the first `fraction` of them, rounded down: partial rotary, as in GPT-NeoX
    (a quarter, arXiv:2204.06745). The other channels compare content alone.

    NTK-aware scaling (Peng 2023, arXiv:2309.00071, section 3.1), for texts s times as long as those of training, is the
    `base` s^(R / (R − 2)) · base: the slowest pair turns s times as slowly, the fastest as before.

    q, k [B, H, T, D], positions [B|1, T] → [B, H, T, D]. Any integer position; the angles are computed in float64.

    Options: `base` sets the longest wavelength, about 2π · base. `fraction`: of D, that turns.

    Raises:
        ValueError: the number of channels that turn is odd or 0, `base` is not positive, or `fraction` not in (0, 1].
    """

    def __init__(self, head_dim: int, base: float = 10000.0, fraction: float = 1.0):
        super().__init__()
        between("(0, 1]", fraction=fraction)
        self.width = int(head_dim * fraction)
        if self.width == 0 or (fraction < 1 and self.width % 2):
            text = _("`fraction` must let an even number of channels turn, but {fraction:g} of {head_dim} is {width}")
            raise ValueError(text.format(fraction=fraction, head_dim=head_dim, width=self.width))
        self.base = base
        self.register_buffer("frequency", frequencies(self.width, base), persistable=False)  # float64 [R/2]

    def query(self, q: Tensor, positions: Tensor) -> Tensor:
        return self._turn(q, positions)

    def key(self, k: Tensor, positions: Tensor) -> Tensor:
        return self._turn(k, positions)

    def _turn(self, x: Tensor, positions: Tensor) -> Tensor:
        angle = positions.unsqueeze([1, -1]).astype(self.frequency.dtype) * self.frequency  # [B|1, 1, T, R/2]
        if self.width == x.shape[-1]:
            return rotate(x, angle)
        return concat([rotate(x[..., : self.width], angle), x[..., self.width :]], -1)
