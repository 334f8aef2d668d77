"""The feed-forward sublayer of 2017."""

from __future__ import annotations

import numpy as np
import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm import single_row
from paddle_tfm.protocols import Tap, TokenInfo
from paddle_tfm_plugins.feed_forward._one_function import forward as in_one_function
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

    def dropped_hidden(self, x: Tensor) -> Tensor:
        return self.dropout.after_relu(self.inner(x))

    def forward(self, x: Tensor, info: TokenInfo, tap: Tap) -> Tensor:
        if isinstance(x, np.ndarray):
            hidden = single_row.affine(self.inner, x)
            return single_row.affine(self.output, np.maximum(hidden, 0.0, out=hidden)).reshape(x.shape)
        if type(self) is ReLU and self.inner_norm is None:
            whole = in_one_function(self.inner, self.dropout, self.output, x)
            if whole is not None:
                return whole
        return super().forward(x, info, tap)

    def computes_arrays(self) -> bool:
        return self.inner_norm is None
