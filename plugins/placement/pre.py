"""Pre-norm: the norm stands before the sublayer."""

from __future__ import annotations

from paddle import Tensor

from paddle_tfm.protocols import Placement, Sublayer, TokenInfo


class Pre(Placement):
    """Pre-norm: x + drop(f(n(x))), with a norm at the end of the stack (Xiong 2020, arXiv:2002.04745).

    Gradients at initialization do not grow towards the last layer, so that it trains without warm-up. x [B, T, C].
    """

    final_norm = True

    def wrap(self, i: int, x: Tensor, sublayer: Sublayer, info: TokenInfo) -> Tensor:
        return x + self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))
