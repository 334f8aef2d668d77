"""Two matrices with swish between them."""

from __future__ import annotations

import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm.validators import positive
from paddle_tfm_plugins.feed_forward._two_layers import TwoLayers


class Swish(TwoLayers):
    """Two matrices with swish, x σ(βx), between them (Ramachandran 2017, arXiv:1710.05941).

    out = swish(x W1 + b1) W2 + b2, σ the logistic function, position by position; x [B, T, C] → [B, T, C], hidden
    [B, T, d_ff]. With β = 1 it is also called silu, and with a gate it is `swiglu`; with β = 1.702 it is an
    approximation of `gelu` (Hendrycks 2016, arXiv:1606.08415).

    Options:
        beta: β.
        bias: whether both matrices have one.
        inner_dropout: dropout on the hidden layer.

    Raises:
        ValueError: inner_dropout is not in [0, 1); beta is not positive.
    """

    def __init__(self, beta: float = 1.0, **parent):
        super().__init__(**parent)
        positive(beta=beta)
        self.beta = beta

    def activation(self, x: Tensor) -> Tensor:
        return x * F.sigmoid(self.beta * x)  # F.silu's gradient is NaN below −88 on a CPU
