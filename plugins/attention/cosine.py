"""Queries and keys of length one: scores that cannot grow."""

from __future__ import annotations

import math

import paddle
from paddle import Tensor, nn

from paddle_tfm import ops
from paddle_tfm.protocols import KeyValue, Mask, Tap, TokenInfo
from paddle_tfm.validators import at_least
from paddle_tfm_plugins.attention._dot_product import attend, merge_heads, project_out, split_heads
from paddle_tfm_plugins.attention.multihead import MultiHead

EPS = 1e-12  # added to a squared length, so that a vector of zeros is not divided by 0


class Cosine(MultiHead):
    """Cosine attention: scores are cosines of queries and keys times a learned number (Henry 2020, arXiv:2010.04245).

    head_h = softmax(g q̂_h k̂_hᵀ) v_h, q̂ = q / |q| and k̂ = k / |k| over the channels of a head; out = [head_1 …
    head_H] W_o. g is one learned number of the layer in place of 1 / sqrt(D), at first log2(L² − L), where the paper
    takes for L the length that 97.5 of 100 training sequences do not exceed. So |score| ≤ |g|, whatever the input; as
    initialized, scores are spread by about g / sqrt(D).

    It supports all positional-encoding hooks. q̂ and k̂ are rotated after the normalization, which a rotation leaves as
    it is; a term on the scores is multiplied by g with them, and, like a bias, is not bounded. Dropout is
    applied to the attention weights.

    x [B, T, C], source [B, S, C] → [B, T, C]; keys and values [B, H, S, D].

    Options:
        length: L.
        bias: whether the four projections have one.
        head_dim: D; None: d_model / num_heads.

    Raises:
        ValueError: length is below 2; what `multihead` raises.
    """

    def __init__(self, *, length: int = 32, **parent):
        super().__init__(**parent)
        at_least(2, length=length)
        start = nn.initializer.Constant(math.log2(length**2 - length))
        self.gain = self.create_parameter([1], default_initializer=start)

    def project(self, source: Tensor, info: TokenInfo) -> KeyValue:
        key = unit(split_heads(self.key(source), self.num_heads))  # [B, H, S, D]
        return KeyValue(info.encoding.key(key, info.positions), split_heads(self.value(source), self.num_heads))

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        q = unit(split_heads(self.query(x), self.num_heads))  # [B, H, T, D]
        context = attend(q, kv, info, mask, self.dropout, tap, scale=self.gain.astype(q.dtype))
        return project_out(merge_heads(context), info, self.inner_norm, self.output)


def unit(x: Tensor) -> Tensor:
    """x / |x| over the last axis; zeros stay zeros."""
    rows = ops.flatten(x, x.dtype)
    square = ops.mean_over_channels(paddle.square(rows)) * rows.shape[1]  # [N, 1]
    return ops.restore(rows * ops.outer(paddle.rsqrt(square + EPS), ops.row_of_ones(rows)), x)
