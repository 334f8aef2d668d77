"""Pre-norm whose branches have a learned scale for each channel."""

from __future__ import annotations

from collections.abc import Sequence

from paddle import Tensor, nn

from paddle_tfm import ops
from paddle_tfm.protocols import LayerSite, Sublayer, TokenInfo, keep_initial
from paddle_tfm.validators import between
from paddle_tfm_plugins.placement.pre import Pre


class LayerScale(Pre):
    """LayerScale: x + λ ⊙ drop(f(n(x))), λ a learned vector that starts small (Touvron 2021, arXiv:2103.17239).

    Pre-norm in which λ [C], one for each sublayer, multiplies the branch channel by channel, so that layers begin close
    to the identity; the stack ends with a norm. As in the paper λ starts at 0.1 in stacks of up to 18 layers, at 1e-5
    up to 24 and at 1e-6 in deeper ones. It is about encoders of images; here a decoder's cross-attention has its λ too.
    x [B, T, C].

    Options:
        initial: of all elements of λ; None: by the depth of the stack, as above.

    Raises:
        ValueError: initial is not a positive number.
    """

    def __init__(self, *, sites: Sequence[LayerSite], d_model: int, initial: float | None = None, **parent):
        super().__init__(sites=sites, d_model=d_model, **parent)
        initial = _by_depth(sites[0]) if initial is None else initial
        between("(0, inf)", initial=initial)
        small = nn.initializer.Constant(initial)
        self.scales = nn.ParameterList(
            [keep_initial(self.create_parameter([d_model], default_initializer=small)) for _ in sites]  # [C] each
        )

    def wrap(self, i: int, x: Tensor, sublayer: Sublayer, info: TokenInfo) -> Tensor:
        branch = self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))
        rows = ops.flatten(branch, self.scales[i].dtype)
        scale = ops.outer(ops.column_of_ones(rows), self.scales[i].unsqueeze(0))  # [B·T, C]
        return x + ops.restore(rows * scale, branch)


def _by_depth(site: LayerSite) -> float:
    """The paper's, section 2: what it says of 24 layers holds from 19 on."""
    return 0.1 if site.depth <= 18 else 1e-5 if site.depth <= 24 else 1e-6
