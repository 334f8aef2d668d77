"""What `relu`, `gelu` and `relu_squared` share: two matrices with an activation between them."""

from __future__ import annotations

from collections.abc import Callable

from paddle import Tensor

from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import FeedForward, Norm, Tap, TokenInfo
from paddle_tfm.validators import between


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
        between("[0, 1)", inner_dropout=inner_dropout)
        self.create_hidden(d_model, d_ff, bias)
        self.output = Linear(d_ff, d_model, bias)
        self.dropout = Dropout(inner_dropout)
        self.inner_norm = inner_norm(d_ff) if inner_norm is not None else None

    def create_hidden(self, d_model: int, width: int, bias: bool) -> None:
        """Make the matrices of the hidden layer, before the output's."""
        self.inner = Linear(d_model, width, bias)

    def activation(self, x: Tensor) -> Tensor:
        """Element by element."""
        raise NotImplementedError

    def hidden(self, x: Tensor) -> Tensor:
        """x [B, T, C] → [B, T, width]."""
        return self.activation(self.inner(x))

    def forward(self, x: Tensor, info: TokenInfo, tap: Tap) -> Tensor:
        hidden = self.hidden(x)  # [B, T, width]
        if self.inner_norm is not None:
            hidden = self.inner_norm(hidden, info.valid, info.positions)
        return self.output(self.dropout(hidden))

    def branch_weights(self) -> list[Tensor]:
        return [self.inner.weight, self.output.weight]
