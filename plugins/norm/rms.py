"""Root mean square normalization: layer normalization without the mean and without the bias."""

from __future__ import annotations

import paddle
from paddle import Tensor, nn

from paddle_tfm import ops
from paddle_tfm.protocols import Norm
from paddle_tfm.validators import positive


class RMSNorm(Norm):
    """Division by the root mean square of each token's channels (Zhang & Sennrich 2019, arXiv:1910.07467).

    y = x / sqrt(mean(x²) + eps) · weight, the mean over C. x [B, T, C] → [B, T, C]; `valid` and `positions` do not
    matter.

    Options: `eps` is added to the mean square.

    Raises:
        ValueError: `eps` is not positive.
    """

    invariances = frozenset({"scale"})

    def __init__(self, d_model: int, eps: float = 1e-6):
        super().__init__()
        positive(eps=eps)
        self.eps = eps
        self.weight = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        rows = ops.flatten(x, self.weight.dtype)
        scale = paddle.rsqrt(ops.mean_over_channels(paddle.square(rows)) + self.eps)  # [N, 1]
        return ops.restore(rows * ops.outer(scale, self.weight.unsqueeze(0)), x)
