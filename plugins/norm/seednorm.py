"""RMS normalization whose gains depend on the token."""

from __future__ import annotations

import paddle
from paddle import Tensor, nn

from paddle_tfm import ops
from paddle_tfm_plugins.norm.rms import RMSNorm


class SeeDNorm(RMSNorm):
    """Self-rescaled dynamic normalization: the gains of `rms` depend on the token (Cai 2025, arXiv:2510.22777).

    y = x / sqrt(mean(x²) + eps) · (weight + tanh(x · β) α), the mean over C; weight, α and β [C] are learned and start
    at 1, 1 and 0: as initialized it is `rms`. The dot product x · β is of the token as it is, so that y tells how long
    x was, as that of `rms` does not. x [B, T, C] → [B, T, C]; `valid` and `positions` do not matter.

    Options: `eps` is added to the mean square.

    Raises:
        ValueError: `eps` is not positive.
    """

    def __init__(self, d_model: int, eps: float = 1e-6):
        super().__init__(d_model, eps)
        self.alpha, self.beta = (
            self.create_parameter([d_model], default_initializer=nn.initializer.Constant(start)) for start in (1.0, 0.0)
        )

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        rows = ops.flatten(x, self.weight.dtype)
        scale = paddle.rsqrt(ops.mean_over_channels(paddle.square(rows)) + self.eps)  # [N, 1]
        by_token = paddle.tanh(paddle.matmul(rows, self.beta.unsqueeze(1)))  # [N, 1]
        gains = ops.outer(scale, self.weight.unsqueeze(0)) + ops.outer(scale * by_token, self.alpha.unsqueeze(0))
        return ops.restore(rows * gains, x)
