"""Scale normalization: the direction of each token's vector, times one learned length."""

from __future__ import annotations

import math

import paddle
from paddle import Tensor, nn

from paddle_tfm import ops
from paddle_tfm.protocols import Norm
from paddle_tfm.validators import between


class ScaleNorm(Norm):
    """Division by the length of each token's vector, times one learned number (Nguyen & Salazar 2019,
    arXiv:1910.05895).

    y = g · x / max(‖x‖, eps), ‖x‖ the Euclidean norm over C. g is one number for all channels; it starts at sqrt(C), so
    that the norm starts as `rms` does. x [B, T, C] → [B, T, C]; `valid` and `positions` do not matter.

    Options: `eps` is the least length that is divided by; a vector shorter than that is multiplied by g / eps.

    Raises:
        ValueError: `eps` is not in (0, 1e15].
    """

    invariances = frozenset({"scale"})

    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        between("(0, 1e15]", eps=eps)  # its square is a number of float32
        self.width, self.eps, self.least = d_model, eps, eps**2
        self.weight = self.create_parameter([1], default_initializer=nn.initializer.Constant(math.sqrt(d_model)))

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        rows = ops.flatten(x, self.weight.dtype)
        square = ops.mean_over_channels(paddle.square(rows)) * self.width  # ‖x‖² [N, 1]
        scale = paddle.rsqrt(square.clip(min=self.least))  # clipped before the root, whose gradient at 0 is infinite
        return ops.restore(rows * ops.outer(scale, self.weight * ops.row_of_ones(rows)), x)
