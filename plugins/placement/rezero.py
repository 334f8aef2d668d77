"""No norm: gates that open from zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from paddle import Tensor, nn

from paddle_tfm.layers import Dropout
from paddle_tfm.protocols import LayerSite, Placement, Sublayer, TokenInfo, keep_initial


class ReZero(Placement):
    """ReZero: x + α drop(f(x)) with no norm, α a learned number that starts at 0 (Bachlechner 2020, arXiv:2003.04887).

    Each layer begins as the identity and lets its branches in as it learns to. Behind a closed gate nothing has a
    gradient: the first step opens the decoder's gates, through which the encoder's get theirs in the second, and from
    the third on every parameter has one. The sublayers of a layer share a gate, as in the authors' code, a decoder's
    three too. There is no norm: the recipe's `norm` has no effect here, and the stack does not end with one either.
    x [B, T, C].
    """

    expected_failures: ClassVar[dict[str, str]] = {
        "output_normalized": "it has no norm: how large the output is, the gates decide",
    }

    def __init__(self, *, sites: Sequence[LayerSite], dropout: float, **parent):
        super().__init__(sites=[], dropout=dropout, **parent)
        self.gate = keep_initial(self.create_parameter([1], default_initializer=nn.initializer.Constant(0.0)))
        self.drops = nn.LayerList([Dropout(dropout) for _ in sites])

    def wrap(self, i: int, x: Tensor, sublayer: Sublayer, info: TokenInfo) -> Tensor:
        return x + self.drops[i](sublayer(x)) * self.gate
