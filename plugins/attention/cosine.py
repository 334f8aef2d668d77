"""Queries and keys of length one: scores that cannot grow."""

from __future__ import annotations

import math

from paddle import Tensor, nn

from paddle_tfm.ops import unit
from paddle_tfm.protocols import KeyValue, Mask, Tap, TokenInfo
from paddle_tfm.validators import at_least
from paddle_tfm_plugins.attention._dot_product import attend
from paddle_tfm_plugins.attention.multihead import MultiHead


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

    def queries(self, x: Tensor) -> Tensor:
        return unit(super().queries(x))

    def keys(self, source: Tensor) -> Tensor:
        return unit(super().keys(source))

    def heads(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        q = self.queries(x)
        return attend(q, kv, info, mask, self.dropout, tap, scale=self.gain.astype(q.dtype))
