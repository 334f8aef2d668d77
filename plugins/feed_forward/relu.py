"""The feed-forward sublayer of 2017."""

from __future__ import annotations

import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm_plugins.feed_forward._two_layers import TwoLayers


class ReLU(TwoLayers):
    """Two matrices with max(0, ·) between them: the original (Vaswani 2017, arXiv:1706.03762).

    out = max(0, x W1 + b1) W2 + b2, position by position; x [B, T, C] → [B, T, C], hidden [B, T, d_ff].

    Options:
        bias: whether both matrices have one.
        inner_dropout: dropout on the hidden layer (the paper has none there).

    Raises:
        ValueError: inner_dropout is not in [0, 1).
    """

    def activation(self, x: Tensor) -> Tensor:
        return F.relu(x)
