"""Post-norm for deep stacks: the residual weighs more, the branches start smaller."""

from __future__ import annotations

from collections.abc import Sequence

from paddle import Tensor

from paddle_tfm.protocols import LayerSite, Placement, Sublayer, TokenInfo


class DeepNorm(Placement):
    """DeepNorm: n(α x + drop(f(x))), α and the branches' initial scale from the depth (Wang 2022, arXiv:2203.00555).

    α is a constant; β multiplies the initial values of the branches' weights: feed-forward matrices, value and output
    projections, and not those of queries and keys. The paper derives both so that the change which an update makes to
    the model is bounded, whatever its depth. For N encoder and M decoder layers, α and β are 0.81 (N⁴ M)^(1/16) and
    0.87 (N⁴ M)^(−1/16) in the encoder, (3 M)^(1/4) and (12 M)^(−1/4) in the decoder; in a single stack of L layers
    (2 L)^(1/4) and (8 L)^(−1/4).

    The paper draws those weights by Xavier's rule with gain β: choose `xavier` as the recipe's initializer for that.
    The stack ends with the last sublayer's norm, as in `post`. x [B, T, C].

    Options:
        gain: whether β is applied; False: the recipe's initial values as they are.
    """

    def __init__(self, *, sites: Sequence[LayerSite], gain: bool = True, **parent):
        super().__init__(sites=sites, **parent)
        self.alpha, beta = _constants(sites[0])
        if gain:
            self.branch_gain = beta

    def wrap(self, i: int, x: Tensor, sublayer: Sublayer, info: TokenInfo) -> Tensor:
        return self.norms[i](x * self.alpha + self.drops[i](sublayer(x)), info.valid, info.positions)


def _constants(site: LayerSite) -> tuple[float, float]:
    """(α, β) of a stack."""
    n, m = site.encoder_layers, site.decoder_layers
    if n == 0 or m == 0:
        return (2 * (n + m)) ** 0.25, (8 * (n + m)) ** -0.25
    if site.stack == "decoder":
        return (3 * m) ** 0.25, (12 * m) ** -0.25
    return 0.81 * (n**4 * m) ** (1 / 16), 0.87 * (n**4 * m) ** (-1 / 16)
