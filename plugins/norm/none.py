"""No normalization."""

from __future__ import annotations

from paddle import Tensor

from paddle_tfm.protocols import Norm


class NoNorm(Norm):
    """No normalization, y = x: for placements that do without, such as ReZero (Bachlechner 2020, arXiv:2003.04887)."""

    def __init__(self):
        super().__init__()

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        return x
