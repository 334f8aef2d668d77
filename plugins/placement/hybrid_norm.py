"""Norms on queries, keys and values in attention, and one on the residual in front of the feed-forward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from paddle import Tensor, nn

from paddle_tfm.layers import Dropout
from paddle_tfm.protocols import LayerSite, Placement, Sublayer, TokenInfo


class HybridNorm(Placement):
    """HybridNorm: x + drop(f(x)) with q, k, v normalized; n(x) + drop(f(n(x))) (Zhuo 2025, arXiv:2503.04598).

    The first form is for attention, the second for the feed-forward. Attention reads the residual as it is and
    normalizes the queries, keys and values of each head (`projection_norm`); the feed-forward's norm stands on the
    residual itself, as in post-norm, but in front of the sublayer, whose output is added to what is normalized. The
    stack ends with a norm, as in the authors' code. The paper is about language models; here a decoder's
    cross-attention is as its self-attention. The recipe's norm must look at a token alone, as `layer` and `rms` do: one
    with running statistics is refused. x [B, T, C].

    Options:
        pre_first: whether the bottom layer is pre-norm in all of its sublayers, its queries, keys and values normalized
            as everywhere: HybridNorm*, which the paper has for its largest models.
    """

    final_norm = True
    projection_norm = True
    expected_failures: ClassVar[dict[str, str]] = {
        "identity_path": "the feed-forward's norm stands on the residual",
    }

    def __init__(self, *, sites: Sequence[LayerSite], dropout: float, pre_first: bool = False, **parent):
        pre = pre_first and sites[0].layer == 0
        normed = [site for site in sites if pre or site.sublayer == "feed_forward"]
        super().__init__(sites=normed, dropout=dropout, **parent)
        self.pre = pre
        self.drops = nn.LayerList([Dropout(dropout) for _ in sites])

    def wrap(self, i: int, x: Tensor, sublayer: Sublayer, info: TokenInfo) -> Tensor:
        if self.pre:
            return x + self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))
        if i == len(self.drops) - 1:  # the feed-forward
            x = self.norms[0](x, info.valid, info.positions)
        return x + self.drops[i](sublayer(x))
