"""The position-wise sublayer."""

from __future__ import annotations

from typing import ClassVar

from paddle import Tensor

from paddle_tfm.protocols.context import TokenInfo
from paddle_tfm.protocols.layer_component import LayerComponent
from paddle_tfm.protocols.tap import Tap


class FeedForward(LayerComponent):
    """The position-wise sublayer, such as max(0, x W1 + b1) W2 + b2: x [B, T, C] → [B, T, C].

    Givens:
        d_model: C. d_ff: the hidden width (settable). dropout: of the model's branches (settable). site: where it
            stands.
        inner_norm: a function width → Norm for the norm before the output projection, or None; a class without this
            parameter is refused by placements that need one.

    Invariances: a token's output depends on that token alone, or on it and the `reach` before it; padding changes no
    other.
    Expected failures: `expected_failures` names checks, each with a reason; of `trains` also the parameters
        that it excuses: "trains *experts*".

    Example::

        import paddle
        from paddle_tfm.layers import Linear
        from paddle_tfm.protocols import FeedForward

        class Tanh(FeedForward):
            def __init__(self, d_model: int, d_ff: int, bias: bool = True):
                super().__init__()
                self.inner = Linear(d_model, d_ff, bias)
                self.output = Linear(d_ff, d_model, bias)

            def forward(self, x, info, tap):
                return self.output(paddle.tanh(self.inner(x)))  # [B, T, d_ff] -> [B, T, C]
    """

    kind: ClassVar[str] = "feed_forward"
    givens = frozenset({"d_model", "d_ff", "dropout", "site", "inner_norm"})
    settable = frozenset({"d_ff", "dropout"})
    reach: int = 0
    """How many inputs before x it reads, of its own sublayer: ``info.window(x, reach)``. The engine keeps them while it
    decodes. A constructor may set it."""

    def forward(self, x: Tensor, info: TokenInfo, tap: Tap) -> Tensor:
        """x [B, T, C] → [B, T, C]. An auxiliary loss goes to ``tap.add_aux_loss``."""
        raise NotImplementedError

    def branch_weights(self) -> list[Tensor]:
        """The weights that DeepNorm scales."""
        return []
