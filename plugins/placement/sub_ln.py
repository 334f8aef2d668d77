"""Pre-norm with a second norm inside each sublayer."""

from __future__ import annotations

import math
from collections.abc import Sequence

from paddle_tfm.protocols import LayerSite
from paddle_tfm_plugins.placement.pre import Pre


class SubLN(Pre):
    """Sub-LayerNorm: pre-norm, with a norm before each branch's output projection too (Wang 2022, arXiv:2210.06423).

    x + drop(f(n(x))), with f's own inner norm before its last matrix; a norm at the end of the stack. The paper derives
    an initial scale for the weights of the branches, for N encoder and M decoder layers: sqrt(log 3M · log 2N / 3) in
    the encoder and sqrt(log 3M) in the decoder; sqrt(log 2L) in a single stack of L layers. As in the authors' code
    (microsoft/torchscale), cross-attention has neither the inner norm nor the scale. x [B, T, C].

    Options:
        gain: whether that initial scale is applied; False: the recipe's initial values as they are.
    """

    inner_norm = True

    def __init__(self, *, sites: Sequence[LayerSite], gain: bool = True, **parent):
        super().__init__(sites=sites, **parent)
        if gain:
            inside = [site for site in sites if self.asks("inner_norm", site.sublayer)]
            self.branch_gain = {site.sublayer: _gain(site) for site in inside}

    @classmethod
    def asks(cls, norm: str, sublayer: str) -> bool:
        return super().asks(norm, sublayer) and sublayer != "cross"


def _gain(site: LayerSite) -> float:
    n, m = site.encoder_layers, site.decoder_layers
    if n == 0 or m == 0:
        return math.sqrt(math.log(2 * (n + m)))
    if site.stack == "decoder":
        return math.sqrt(math.log(3 * m))
    return math.sqrt(math.log(3 * m) * math.log(2 * n) / 3)
