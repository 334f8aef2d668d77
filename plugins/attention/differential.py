"""Attention by the difference of two softmaxes."""

from __future__ import annotations

import math

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm.language import _
from paddle_tfm.protocols import Geometry, KeyValue, LayerSite, Mask, Tap, TokenInfo
from paddle_tfm_plugins.attention._dot_product import (
    gather,
    scores_of,
    split_heads,
    width_of_head,
)
from paddle_tfm_plugins.attention.multihead import MultiHead
from paddle_tfm_plugins.norm.rms import RMSNorm


class Differential(MultiHead):
    """Differential attention: one softmax minus λ times another, to cancel noise (Ye 2024, arXiv:2410.05258).

    A_h = softmax(q¹_h k¹_hᵀ / sqrt(D)) − λ softmax(q²_h k²_hᵀ / sqrt(D)), head_h = (1 − λ₀) RMSNorm(A_h v_h), out =
    [head_1 … head_{H/2}] W_o. λ = exp(a₁ · b₁) − exp(a₂ · b₂) + λ₀ with vectors a, b [D] of the layer, drawn from
    N(0, 0.1²), and λ₀ = 0.8 − 0.6 exp(−0.3 l) in layer l = 0, 1, … of its stack. The norm is over the 2D channels of
    a head, its weight shared by the heads.

    As in the paper there are half as many heads as in `multihead`, H / 2, each with two queries and two keys of width
    D = d_model / num_heads and values of width 2D: the matrices, the scores' work and the cache have the size of
    `multihead`'s, and 6D numbers are learned besides.

    To an encoding each softmax is a head: queries 2h and 2h + 1 belong to head h, and may be rotated, and scores have H
    heads to be biased or added to. A term on the values is refused, for it is D wide. A placement that normalizes
    queries, keys and values (`hybrid_norm`) normalizes D channels at a time: the query and key of each softmax, and
    each half of a head's values. Dropout is applied to A, and A is what is recorded as attention: its rows sum to 1 −
    λ, and it may be negative.

    x [B, T, C], source [B, S, C] → [B, T, C]; keys [B, H, S, D], values [B, H / 2, S, 2D].

    Options:
        bias: whether the four projections have one; in the authors' code (microsoft/unilm) they have none.

    Raises:
        ValueError: num_heads is odd, below 1, or does not divide d_model.
    """

    supports = frozenset({"embed", "rotate", "bias", "scores"})
    expected_failures = {
        "values": "each head is normalized after its values are averaged",
        "temperature": "it cannot be read off the output, for each head is normalized; the scores are those of "
        "`multihead`",
    }

    fixed_options = frozenset({"head_dim"})

    def __init__(self, *, d_model: int, num_heads: int, site: LayerSite, bias: bool = False, **parent):
        _, _, head_dim = self.geometry(d_model, num_heads)
        super().__init__(d_model=d_model, num_heads=num_heads, head_dim=None, bias=bias, **parent)
        self.lambda_init = 0.8 - 0.6 * math.exp(-0.3 * site.layer)
        small = nn.initializer.Normal(0.0, 0.1)
        self.lambda_q1, self.lambda_k1, self.lambda_q2, self.lambda_k2 = (
            self.create_parameter([head_dim], default_initializer=small) for _ in range(4)
        )
        self.head_norm = RMSNorm(2 * head_dim, eps=1e-5)

    @classmethod
    def geometry(cls, d_model: int, num_heads: int, **options: object) -> Geometry:
        head_dim = width_of_head(d_model, num_heads)
        if num_heads % 2:
            raise ValueError(
                _("`num_heads` must be even, for a head has two softmaxes, but is {num_heads}").format(
                    num_heads=num_heads
                )
            )
        return Geometry(num_heads, num_heads, head_dim)

    def project(self, source: Tensor, info: TokenInfo) -> KeyValue:
        value = split_heads(self.value(source), self.num_heads // 2)
        return KeyValue(info.encoding.key(self.keys(source), info.positions), value)

    def heads(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        softmaxes = F.softmax(mask.add_to(scores_of(self.queries(x), kv.key, info, mask)), -1)  # [B, H, T, S]
        batch, _, queries, keys = softmaxes.shape
        pairs = softmaxes.reshape([batch, self.num_heads // 2, 2, queries, keys])  # [B, H, T, S] -> [B, H/2, 2, T, S]
        weights = pairs[:, :, 0] - self.subtracted().astype(pairs.dtype) * pairs[:, :, 1]  # [B, H/2, T, S]
        context = gather(weights, kv, info, mask, self.dropout, tap)  # [B, H/2, T, 2D]
        return self.head_norm(context) * (1.0 - self.lambda_init)

    def subtracted(self) -> Tensor:
        """λ, a number."""
        first, second = paddle.dot(self.lambda_q1, self.lambda_k1), paddle.dot(self.lambda_q2, self.lambda_k2)
        return paddle.exp(first) - paddle.exp(second) + self.lambda_init

    def branch_weights(self) -> list[Tensor]:
        return [self.output.weight]  # a scale of the values would be undone by the norm of each head
