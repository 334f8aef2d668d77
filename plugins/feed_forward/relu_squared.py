"""The feed-forward sublayer of Primer."""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm_plugins.feed_forward._two_layers import TwoLayers


class ReLUSquared(TwoLayers):
    """Two matrices with the squared ReLU max(0, ·)² between them (So 2021, arXiv:2109.08668).

    out = max(0, x W1 + b1)² W2 + b2, position by position; x [B, T, C] → [B, T, C], hidden [B, T, d_ff]. Without biases
    the output grows with the square of the input. DeepNorm scales both matrices, as in every sublayer of two, so that
    here the output scales with the cube.

    Options:
        bias: whether both matrices have one.
        inner_dropout: dropout on the hidden layer.

    Raises:
        ValueError: inner_dropout is not in [0, 1).
    """

    def activation(self, x: Tensor) -> Tensor:
        return paddle.square(F.relu(x))
