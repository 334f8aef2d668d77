"""Norms around each sublayer, and one on what enters the stack."""

from __future__ import annotations

from collections.abc import Sequence

from paddle import Tensor

from paddle_tfm.protocols import LayerSite, NormFactory, Sublayer, TokenInfo
from paddle_tfm_plugins.placement.sandwich import Sandwich


class Peri(Sandwich):
    """Peri-LN: y = n0(x) at the bottom, y + drop(n2(f(n1(y)))) in each sublayer (Kim 2025, arXiv:2502.02732).

    Its sublayers and the norm at the end of the stack are those of `sandwich`. The one difference is n0, which the
    paper lists as optional: the residual stream begins with normalized embeddings, on the scale of what the branches
    add. n0 belongs to the first layer of each stack (`sites[0].layer == 0`) and stands before that layer's first
    sublayer, which is after positions and embedding dropout. x [B, T, C].
    """

    def __init__(self, *, sites: Sequence[LayerSite], norm: NormFactory, d_model: int, **parent):
        super().__init__(sites=sites, norm=norm, d_model=d_model, **parent)
        self.embedding_norm = norm(sites[0], d_model) if sites[0].layer == 0 else None

    def forward(self, x: Tensor, sublayers: Sequence[Sublayer], info: TokenInfo) -> Tensor:
        if self.embedding_norm is not None:
            x = self.embedding_norm(x, info.valid, info.positions)
        return super().forward(x, sublayers, info)
