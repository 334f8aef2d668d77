"""Where norm, residual and dropout stand around a sublayer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from paddle import Tensor, nn

from paddle_tfm.protocols.component import Component
from paddle_tfm.protocols.context import LayerSite, TokenInfo
from paddle_tfm.protocols.norm import Norm

Sublayer = Callable[[Tensor], Tensor]


NormFactory = Callable[[LayerSite, int], Norm]


@dataclass(frozen=True)
class Profile:
    """What one pass over data at initialization saw in a stack: the variance of its input, and of each branch's output,
    in the order in which the branches ran."""

    input_variance: float
    branch_variances: list[float]


class Placement(Component, nn.Layer):
    """Where norm, residual and dropout stand around the sublayers of one layer.

    Most write only `wrap`; e.g. pre-norm is ``x + drop(f(n(x)))``. Givens: d_model, sites (one a sublayer), norm (a
    function (site, width) → a new Norm), dropout. The constructor below makes `self.norms[i]` and `self.drops[i]`, an
    instance of their own for each sublayer.
    """

    kind: ClassVar[str] = "placement"
    givens = frozenset({"d_model", "sites", "norm", "dropout"})
    settable = frozenset({"dropout"})
    final_norm: ClassVar[bool] = False  # does the stack end with a norm?
    inner_norm: ClassVar[bool] = False  # a norm before each branch's output projection
    branch_gain: float = 1.0  # initial scale of branch_weights()

    def __init__(self, sites: Sequence[LayerSite], norm: NormFactory, d_model: int, dropout: float):
        from paddle_tfm.layers import Dropout

        super().__init__()
        self.norms = nn.LayerList([norm(site, d_model) for site in sites])
        self.drops = nn.LayerList([Dropout(dropout) for _ in sites])

    def wrap(self, i: int, x: Tensor, sublayer: Sublayer, info: TokenInfo) -> Tensor:
        """One sublayer: x [B, T, C] → [B, T, C]. Call `sublayer` exactly once."""
        raise NotImplementedError

    def forward(self, x: Tensor, sublayers: Sequence[Sublayer], info: TokenInfo) -> Tensor:
        """All sublayers of the layer: by default `wrap` each in turn."""
        for i, sublayer in enumerate(sublayers):
            x = self.wrap(i, x, sublayer, info)
        return x

    @classmethod
    def calibrate(cls, placements: Sequence[Placement], profile: Profile) -> None:
        """Set initial values from data, once before training (Admin). `placements`: those of a stack, bottom first."""
