"""One norm for all sublayers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from paddle import Tensor, nn

from paddle_tfm.layers import Dropout
from paddle_tfm.protocols import LayerSite, NormFactory, Sublayer, TokenInfo
from paddle_tfm_plugins.placement.pre import Pre


class SharedNorm(Pre):
    """Wrong on purpose: pre-norm with one norm for the three sublayers of a layer.

    Symptom: on an easy task none, which is why the mistake lives long. With BatchNorm, its running statistics fit none
    of the sublayers. x [B, T, C] → [B, T, C].
    """

    expected_failures: ClassVar[dict[str, str]] = {"own_norms": "the mistake: one norm serves all sublayers of a layer"}

    def __init__(self, sites: Sequence[LayerSite], norm: NormFactory, d_model: int, dropout: float):
        nn.Layer.__init__(self)
        self.norms = nn.LayerList([norm(sites[0], d_model)])
        self.drops = nn.LayerList([Dropout(dropout) for _ in sites])

    def wrap(self, i: int, x: Tensor, sublayer: Sublayer, info: TokenInfo) -> Tensor:
        return x + self.drops[i](sublayer(self.norms[0](x, info.valid, info.positions)))
