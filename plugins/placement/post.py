"""Post-norm: the norm stands after the sum, the placement of 2017."""

from __future__ import annotations

from paddle import Tensor

from paddle_tfm.protocols import Placement, Sublayer, TokenInfo


class Post(Placement):
    """Post-norm: n(x + drop(f(x))), the original; deep stacks need warm-up (Vaswani 2017, arXiv:1706.03762).

    The stack ends with the last sublayer's norm and has no other. x [B, T, C].
    """

    def wrap(self, i: int, x: Tensor, sublayer: Sublayer, info: TokenInfo) -> Tensor:
        return self.norms[i](x + self.drops[i](sublayer(x)), info.valid, info.positions)
