"""All sublayers of a layer side by side, on one normalized input."""

from __future__ import annotations

from collections.abc import Sequence

from paddle import Tensor

from paddle_tfm.protocols import LayerSite, Placement, Sublayer, TokenInfo


class Parallel(Placement):
    """Parallel sublayers: x + drop(f1(n(x)) + f2(n(x)) …), one norm a layer (GPT-J; Chowdhery 2022, arXiv:2204.02311).

    In a decoder the cross-attention runs beside the self-attention too, so that it does not see what that gathered in
    the same layer. One norm and one dropout for all sublayers of the layer; the stack ends with a norm. x [B, T, C].
    """

    final_norm = True

    def __init__(self, *, sites: Sequence[LayerSite], **parent):
        super().__init__(sites=sites[:1], **parent)

    def forward(self, x: Tensor, sublayers: Sequence[Sublayer], info: TokenInfo) -> Tensor:
        normed = self.norms[0](x, info.valid, info.positions)
        branches = sublayers[0](normed)
        for sublayer in sublayers[1:]:
            branches = branches + sublayer(normed)
        return x + self.drops[0](branches)
