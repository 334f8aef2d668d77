"""Post-norm whose residual weighs as much as all branches together."""

from __future__ import annotations

from collections.abc import Sequence

from paddle import Tensor, nn

from paddle_tfm.protocols import LayerSite, NormFactory, Placement, Sublayer, TokenInfo
from paddle_tfm.validators import positive


class Keel(Placement):
    """Keel: n2(α x + drop(f(n1(x)))), post-norm whose residual counts α-fold (Chen & Wei 2026, arXiv:2601.19895).

    α is the number of sublayers of the stack; n2 is `norms[i]` and n1 is `input_norms[i]`, two instances for each
    sublayer. In `post` the norm behind the sum makes the gradient of x smaller by about √2 in each sublayer, so that
    little of it reaches the bottom of a deep stack; with α it is by √(1 + 1/α²) only. The stack ends with the last
    sublayer's norm. x [B, T, C].

    Options:
        alpha: α; None: the number of sublayers of the stack, the paper's.

    Raises:
        ValueError: alpha is not positive.
    """

    def __init__(
        self,
        *,
        sites: Sequence[LayerSite],
        norm: NormFactory,
        d_model: int,
        alpha: float | None = None,
        **parent,
    ):
        super().__init__(sites=sites, norm=norm, d_model=d_model, **parent)
        positive(alpha=alpha)
        self.alpha = sites[0].depth * len(sites) if alpha is None else alpha
        self.input_norms = nn.LayerList([norm(site, d_model) for site in sites])

    def wrap(self, i: int, x: Tensor, sublayer: Sublayer, info: TokenInfo) -> Tensor:
        branch = self.drops[i](sublayer(self.input_norms[i](x, info.valid, info.positions)))
        return self.norms[i](x * self.alpha + branch, info.valid, info.positions)
