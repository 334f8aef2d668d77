"""Two residuals side by side: one normalized after each sublayer, one never."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import paddle
from paddle import Tensor

from paddle_tfm.protocols import LayerSite, NormFactory, Placement, Sublayer, TokenInfo


class ResidualDual(Placement):
    """ResiDual: x ← n(x + b) and d ← d + b with b = drop(f(x)), at the end x + n(d) (Xie 2023, arXiv:2304.14802).

    The sublayers read the post-norm residual x, so that what layers compute stays different; the pre-norm residual d,
    which no norm interrupts, carries the gradient to every layer whatever the depth. Both begin as the embedded tokens.
    Between the layers travel [x, d], [B, T, 2, C]. The stack ends with x + n(d), n a norm of its own (the site `final`
    of the recipe's `norm`), and has no other; the authors' code gives that norm an eps of 1e-7. x [B, T, C].
    """

    def __init__(self, *, sites: Sequence[LayerSite], norm: NormFactory, d_model: int, **parent):
        super().__init__(sites=sites, norm=norm, d_model=d_model, **parent)
        site = sites[0]
        final = replace(site, sublayer="final", layer=site.depth)
        self.dual_norm = norm(final, d_model) if site.layer == site.depth - 1 else None

    def enter(self, x: Tensor, info: TokenInfo) -> Tensor:
        return paddle.stack([x, x], 2)  # [B, T, C] -> [B, T, 2, C]

    def forward(self, x: Tensor, sublayers: Sequence[Sublayer], info: TokenInfo) -> Tensor:
        post, dual = x.unbind(2)  # [B, T, C] each
        for norm, drop, sublayer in zip(self.norms, self.drops, sublayers):
            branch = drop(sublayer(post))
            post, dual = norm(post + branch, info.valid, info.positions), dual + branch
        return paddle.stack([post, dual], 2)

    def leave(self, x: Tensor, info: TokenInfo) -> Tensor:
        post, dual = x.unbind(2)
        return post if self.dual_norm is None else post + self.dual_norm(dual, info.valid, info.positions)
