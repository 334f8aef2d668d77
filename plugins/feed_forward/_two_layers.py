"""What `relu`, `gelu` and `relu_squared` share: two matrices with an activation between them."""

from __future__ import annotations

from collections.abc import Callable

from paddle import Tensor

from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import FeedForward, Norm, Tap, TokenInfo


class TwoLayers(FeedForward):
    """out = drop(n(activation(x W1 + b1))) W2 + b2; n only under a placement that asks for an inner norm.

    x [B, T, C] → [B, T, C], or any x [..., C] where there is no inner norm.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        inner_norm: Callable[[int], Norm] | None = None,
        bias: bool = True,
        inner_dropout: float = 0.0,
    ):
        super().__init__()
        self.inner = Linear(d_model, d_ff, bias)
        self.output = Linear(d_ff, d_model, bias)
        self.dropout = Dropout(inner_dropout)
        self.inner_norm = inner_norm(d_ff) if inner_norm is not None else None

    def activation(self, x: Tensor) -> Tensor:
        """Element by element."""
        raise NotImplementedError

    def forward(self, x: Tensor, info: TokenInfo, tap: Tap) -> Tensor:
        hidden = self.activation(self.inner(x))  # [B, T, d_ff]
        if self.inner_norm is not None:
            hidden = self.inner_norm(hidden, info.valid, info.positions)
        return self.output(self.dropout(hidden))

    def branch_weights(self) -> list[Tensor]:
        return [self.inner.weight, self.output.weight]
