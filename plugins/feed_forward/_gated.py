"""What `swiglu`, `geglu` and `reglu` share: a product of two projections, one of them through an activation."""

from __future__ import annotations

from paddle import Tensor

from paddle_tfm.layers import Linear
from paddle_tfm_plugins.feed_forward._two_layers import TwoLayers


class Gated(TwoLayers):
    """out = drop(n(activation(x W_g + b_g) ⊙ (x W_u + b_u))) W_o + b_o; n only under a placement that asks for an inner
    norm. x [B, T, C] → [B, T, C], hidden [B, T, width]."""

    def __init__(self, *, d_ff: int, equal_parameters: bool = False, **parent):
        super().__init__(d_ff=max(1, 2 * d_ff // 3) if equal_parameters else d_ff, **parent)

    def create_hidden(self, d_model: int, width: int, bias: bool) -> None:
        self.gate = Linear(d_model, width, bias)
        self.up = Linear(d_model, width, bias)

    def hidden(self, x: Tensor) -> Tensor:
        return self.activation(self.gate(x)) * self.up(x)

    def branch_weights(self) -> list[Tensor]:
        return [self.up.weight, self.output.weight]
