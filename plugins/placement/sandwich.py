"""Pre-norm with a second norm at the end of each branch."""

from __future__ import annotations

from collections.abc import Sequence

from paddle import Tensor, nn

from paddle_tfm.protocols import LayerSite, NormFactory, Placement, Sublayer, TokenInfo


class Sandwich(Placement):
    """Sandwich-LN: x + drop(n2(f(n1(x)))), a norm at both ends of each branch (Ding 2021, arXiv:2105.13290).

    n1 is `norms[i]` and n2 is `branch_norms[i]`, two instances for each sublayer; the stack ends with a norm. A branch
    reads what is normalized, as in `pre`, and adds what is normalized, as in `res_post`. x [B, T, C].

    Two things differ from the authors' CogView: its dropout is applied to f, before n2, ours to the output of n2, as in
    `res_post`; and PB-Relax, its other remedy against overflow in 16 bits, is no matter of a placement.
    """

    final_norm = True

    def __init__(self, *, sites: Sequence[LayerSite], norm: NormFactory, d_model: int, **parent):
        super().__init__(sites=sites, norm=norm, d_model=d_model, **parent)
        self.branch_norms = nn.LayerList([norm(site, d_model) for site in sites])

    def wrap(self, i: int, x: Tensor, sublayer: Sublayer, info: TokenInfo) -> Tensor:
        branch = sublayer(self.norms[i](x, info.valid, info.positions))
        return x + self.drops[i](self.branch_norms[i](branch, info.valid, info.positions))
