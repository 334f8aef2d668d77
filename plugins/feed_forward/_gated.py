"""What `swiglu`, `geglu` and `reglu` share: a product of two projections, one of them through an activation."""

from __future__ import annotations

from collections.abc import Callable

from paddle import Tensor

from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import FeedForward, Norm, Tap, TokenInfo


class Gated(FeedForward):
    """out = drop(n(activation(x W_g + b_g) ⊙ (x W_u + b_u))) W_o + b_o; n only under a placement that asks for an inner
    norm. x [B, T, C] → [B, T, C], hidden [B, T, width]."""

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        inner_norm: Callable[[int], Norm] | None = None,
        bias: bool = True,
        inner_dropout: float = 0.0,
        equal_parameters: bool = False,
    ):
        super().__init__()
        width = max(1, 2 * d_ff // 3) if equal_parameters else d_ff
        self.gate = Linear(d_model, width, bias)
        self.up = Linear(d_model, width, bias)
        self.output = Linear(width, d_model, bias)
        self.dropout = Dropout(inner_dropout)
        self.inner_norm = inner_norm(width) if inner_norm is not None else None

    def activation(self, x: Tensor) -> Tensor:
        """Of the gate, element by element."""
        raise NotImplementedError

    def forward(self, x: Tensor, info: TokenInfo, tap: Tap) -> Tensor:
        hidden = self.activation(self.gate(x)) * self.up(x)  # [B, T, width]
        if self.inner_norm is not None:
            hidden = self.inner_norm(hidden, info.valid, info.positions)
        return self.output(self.dropout(hidden))

    def branch_weights(self) -> list[Tensor]:
        return [self.up.weight, self.output.weight]
