"""Multi-head attention whose projections learn a change of low rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import paddle
from paddle import Tensor, nn

from paddle_tfm.layers import Linear
from paddle_tfm.protocols import Norm, keep_initial, maps_as
from paddle_tfm.validators import at_least, positive
from paddle_tfm_plugins.attention.multihead import MultiHead

Projection = Literal["query", "key", "value", "output"]


class LowRank(Linear):
    """y = x (W + s · A B) + b with A [in_features, rank] and B [rank, out_features]; B starts at zero."""

    def __init__(self, in_features: int, out_features: int, bias: bool, rank: int, scale: float):
        super().__init__(in_features, out_features, bias)
        self.scale = scale
        self.down = maps_as(self.create_parameter([in_features, rank]), "output")
        zero = nn.initializer.Constant(0.0)
        self.up = keep_initial(maps_as(self.create_parameter([rank, out_features], default_initializer=zero), "input"))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + paddle.matmul(paddle.matmul(x, self.down), self.up) * self.scale

    def merged(self) -> Linear:
        """The same map as one matrix, W + s · A B."""
        rows, columns = self.weight.shape
        linear = Linear(rows, columns, self.bias is not None)
        linear.weight.set_value(self.weight + paddle.matmul(self.down, self.up) * self.scale)
        if self.bias is not None:
            linear.bias.set_value(self.bias)
        return linear


class LoRA(MultiHead):
    """Multi-head attention, some of whose projections learn a change of low rank (Hu 2021, arXiv:2106.09685).

    As `multihead`, but that W of each of `projections` is W + alpha / rank · A B, A [C, rank] and B [rank, H·D]. B
    starts at zero, so that a model starts as it was. A and B are called `down` and `up`, all other parameters as in
    `multihead`: `train.from` carries these over, and `train.freeze: ["*.weight", "*.bias"]` leaves A and B to be
    trained. An export writes W + alpha / rank · A B as one matrix.

    x [B, T, C], source [B, S, C] → [B, T, C]; keys and values [B, H, S, D].

    Options:
        rank: of the change. alpha: its factor is alpha / rank, so that the rate need not change with the rank.
        projections: which of query, key, value and output learn it. The paper's are the first and the third.
        bias: whether the four projections have one. head_dim: D; None: d_model / num_heads.

    Raises:
        ValueError: as `multihead`; rank is below 1, or alpha not positive.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float,
        inner_norm: Callable[[int], Norm] | None = None,
        rank: int = 8,
        alpha: float = 8.0,
        projections: list[Projection] = ["query", "value"],  # noqa: B006 — read only
        bias: bool = True,
        head_dim: int | None = None,
    ):
        at_least(1, rank=rank)
        positive(alpha=alpha)
        super().__init__(d_model, num_heads, dropout, inner_norm, bias=bias, head_dim=head_dim)
        for name in dict.fromkeys(projections):
            rows, columns = getattr(self, name).weight.shape
            setattr(self, name, LowRank(rows, columns, bias, rank, alpha / rank))
