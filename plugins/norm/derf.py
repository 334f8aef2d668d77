"""Dynamic erf: another squashing function in the place of a norm."""

from __future__ import annotations

import paddle
from paddle import Tensor, nn

from paddle_tfm import ops
from paddle_tfm.protocols import Norm
from paddle_tfm.validators import positive


class DynamicErf(Norm):
    """Dynamic erf (Derf), an elementwise function in the place of a norm (Chen 2025, arXiv:2512.10938).

    y = weight · erf(α x + s) + bias, erf(z) = 2/sqrt(π) ∫₀ᶻ exp(−t²) dt; α and the shift s are two learned numbers of
    each norm, weight and bias [C] start at 1 and 0. As in `dyt`, with tanh, an element of y depends on that element of
    x alone, and lies within weight of bias. x [B, T, C] → [B, T, C]; `valid` and `positions` do not matter.

    Options: `alpha` and `shift` are the initial values of α and of s.

    Raises:
        ValueError: `alpha` is not positive.
    """

    def __init__(self, d_model: int, alpha: float = 0.5, shift: float = 0.0):
        super().__init__()
        positive(alpha=alpha)
        self.alpha = self.create_parameter([1], default_initializer=nn.initializer.Constant(alpha))
        self.shift = self.create_parameter([1], default_initializer=nn.initializer.Constant(shift))
        self.weight = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))
        self.bias = self.create_parameter([d_model], is_bias=True)

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        rows = ops.flatten(x, self.weight.dtype)
        ones = ops.column_of_ones(rows)
        squashed = paddle.erf(rows * self.alpha + self.shift) * ops.outer(ones, self.weight.unsqueeze(0))
        return ops.restore(ops.add_outer(squashed, ones, self.bias.unsqueeze(0)), x)
