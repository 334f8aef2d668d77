"""Where norm, residual and dropout stand around a sublayer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from paddle import Tensor, nn

from paddle_tfm.protocols.context import LayerSite, TokenInfo
from paddle_tfm.protocols.layer_component import LayerComponent
from paddle_tfm.protocols.norm import Norm

Sublayer = Callable[[Tensor], Tensor]
NormFactory = Callable[[LayerSite, int], Norm]


@dataclass(frozen=True)
class Profile:
    """One pass over data at initialization: the variance, over real tokens, of a stack's input and of each branch."""

    input_variance: float
    branch_variances: list[float]


class Placement(LayerComponent):
    """Where norm, residual and dropout stand around the sublayers of one layer: x [B, T, C] → [B, T, C].

    Pre-norm is x + drop(f(n(x))), post-norm n(x + drop(f(x))). Most variants write only `wrap`. The constructor below
    makes `self.norms[i]` and `self.drops[i]`, an instance for each sublayer; one that needs more takes ``**parent``.

    Givens:
        sites: one LayerSite a sublayer, in the order in which they run. d_model: C.
        norm: a function (site, width) → a new Norm. dropout: of each branch (settable).

    Between layers travels x, or what `enter` makes of it (hyper-connections: several streams) until `leave` undoes it.

    Invariances: each sublayer is called exactly once a pass; padding and later tokens change no output.
    Expected failures: `expected_failures` names checks such as "output_normalized", each with a reason.

    Example::

        from paddle_tfm.protocols import Placement

        class WeightedPre(Placement):  # x + weight · drop(f(n(x)))
            final_norm = True

            def __init__(self, *, weight: float = 0.5, **parent):
                super().__init__(**parent)
                self.branch_scale = weight

            def wrap(self, i, x, sublayer, info):
                return x + self.branch_scale * self.drops[i](sublayer(self.norms[i](x, info.valid, info.positions)))
    """

    kind: ClassVar[str] = "placement"
    givens = frozenset({"d_model", "sites", "norm", "dropout"})
    settable = frozenset({"dropout"})
    final_norm: ClassVar[bool] = False  # whether the stack ends with a norm
    inner_norm: ClassVar[bool] = False  # whether each branch has a norm before its output projection
    projection_norm: ClassVar[bool] = False  # whether queries, keys and values of each head pass a norm
    branch_gain: float | Mapping[str, float] = 1.0  # initial scale of branch_weights(), or sublayer → scale

    def __init__(self, sites: Sequence[LayerSite], norm: NormFactory, d_model: int, dropout: float):
        from paddle_tfm.layers import Dropout

        super().__init__()
        self.norms = nn.LayerList([norm(site, d_model) for site in sites])
        self.drops = nn.LayerList([Dropout(dropout) for _ in sites])

    @classmethod
    def asks(cls, norm: str, sublayer: str) -> bool:
        """Whether the branch of `sublayer` (self, cross, feed_forward) gets `norm`: inner_norm or projection_norm."""
        return bool(getattr(cls, norm))

    def wrap(self, i: int, x: Tensor, sublayer: Sublayer, info: TokenInfo) -> Tensor:
        """One sublayer: x [B, T, C] → [B, T, C]. Call `sublayer` exactly once."""
        raise NotImplementedError

    def forward(self, x: Tensor, sublayers: Sequence[Sublayer], info: TokenInfo) -> Tensor:
        """All sublayers of the layer: by default `wrap` each in turn."""
        for i, sublayer in enumerate(sublayers):
            x = self.wrap(i, x, sublayer, info)
        return x

    def enter(self, x: Tensor, info: TokenInfo) -> Tensor:
        """Embedded tokens x [B, T, C] → what travels between layers, [B, T, …], each token's apart; the stack asks its
        bottom layer. `wrap` and `forward` take and return it; a sublayer gets and gives [B, T, C]."""
        return x

    def leave(self, x: Tensor, info: TokenInfo) -> Tensor:
        """What comes out of the top layer, which the stack asks → [B, T, C], before the final norm, if there is one."""
        return x

    @classmethod
    def calibrate(cls, placements: Sequence[Placement], profile: Profile) -> None:
        """Set initial values from data, once before training (Admin). `placements`: those of a stack, bottom first."""
