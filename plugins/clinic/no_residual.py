"""No residual connection."""

from __future__ import annotations

from typing import ClassVar

from paddle import Tensor

from paddle_tfm.protocols import Sublayer, TokenInfo
from paddle_tfm_plugins.placement.post import Post


class NoResidual(Post):
    """Wrong on purpose: post-norm without its residual, n(f(x)) for n(x + f(x)).

    Symptom: the loss hardly falls, and the deeper the stack the less: every layer has to carry all information through
    its sublayers. A missing residual was once read as "post-norm is worse". x [B, T, C] → [B, T, C].
    """

    expected_failures: ClassVar[dict[str, str]] = {
        "identity_path": "the mistake: nothing is added to x",
        "each_branch_once": "for the same reason what a sublayer gives is lost where the next ones give nothing",
    }

    def wrap(self, i: int, x: Tensor, sublayer: Sublayer, info: TokenInfo) -> Tensor:
        return self.norms[i](self.drops[i](sublayer(x)), info.valid, info.positions)
