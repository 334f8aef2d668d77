"""The norm stands on the branch, after the sublayer and before the sum."""

from __future__ import annotations

from paddle import Tensor

from paddle_tfm.protocols import Placement, Sublayer, TokenInfo


class ResPost(Placement):
    """Residual post-norm: x + drop(n(f(x))), with a norm at the end of the stack (Liu 2021, arXiv:2111.09883).

    Every branch adds a vector of the same size, whatever its weights; the residual stream itself is never normalized,
    so that the stack ends with a norm, as in Swin V2 and OLMo 2 (arXiv:2501.00656). This is not post-norm, n(x + f(x)):
    that is `post`. x [B, T, C].
    """

    final_norm = True

    def wrap(self, i: int, x: Tensor, sublayer: Sublayer, info: TokenInfo) -> Tensor:
        return x + self.drops[i](self.norms[i](sublayer(x), info.valid, info.positions))
