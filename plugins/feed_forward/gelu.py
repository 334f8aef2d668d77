"""The feed-forward sublayer of BERT and GPT."""

from __future__ import annotations

import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm_plugins.feed_forward._two_layers import TwoLayers


class GELU(TwoLayers):
    """Two matrices with the Gaussian error linear unit x Φ(x) between them (Hendrycks 2016, arXiv:1606.08415).

    out = gelu(x W1 + b1) W2 + b2 with gelu(x) = x Φ(x), Φ the normal distribution function (exact, by erf), position by
    position; x [B, T, C] → [B, T, C], hidden [B, T, d_ff].

    Options:
        bias: whether both matrices have one.
        inner_dropout: dropout on the hidden layer.

    Raises:
        ValueError: inner_dropout is not in [0, 1).
    """

    def activation(self, x: Tensor) -> Tensor:
        return F.gelu(x)
