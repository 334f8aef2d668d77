"""Dynamic Tanh: a squashing function in the place of a norm."""

from __future__ import annotations

import paddle
from paddle import Tensor, nn

from paddle_tfm import ops
from paddle_tfm.protocols import Norm
from paddle_tfm.validators import positive


class DynamicTanh(Norm):
    """Dynamic Tanh (DyT), an elementwise function in the place of a norm (Zhu 2025, arXiv:2503.10622).

    y = weight · tanh(α x) + bias; α is one learned number of each norm, weight and bias [C] start at 1 and 0. There
    are no statistics: an element of y depends on that element of x alone, and lies within weight of bias.
    x [B, T, C] → [B, T, C]; `valid` and `positions` do not matter.

    Options: `alpha` is the initial value of α.

    Raises:
        ValueError: `alpha` is not positive.
    """

    def __init__(self, d_model: int, alpha: float = 0.5):
        super().__init__()
        positive(alpha=alpha)
        initial = nn.initializer.Constant(alpha)
        self.alpha = self.create_parameter([1], default_initializer=initial)
        self.weight = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))
        self.bias = self.create_parameter([d_model], is_bias=True)

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        rows = ops.flatten(x, self.weight.dtype)
        ones = ops.column_of_ones(rows)
        squashed = paddle.tanh(rows * self.alpha) * ops.outer(ones, self.weight.unsqueeze(0))
        return ops.restore(ops.add_outer(squashed, ones, self.bias.unsqueeze(0)), x)
