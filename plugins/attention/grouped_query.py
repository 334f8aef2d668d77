"""Queries in many heads, keys and values in few: a smaller cache."""

from __future__ import annotations

from collections.abc import Callable

from paddle import Tensor

from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import Attention, Geometry, KeyValue, Mask, Norm, Tap, TokenInfo
from paddle_tfm.validators import at_least, divides
from paddle_tfm_plugins.attention._dot_product import (
    attend,
    merge_heads,
    project_out,
    split_heads,
    width_of_head,
)
from paddle_tfm_plugins.attention._normed import projection


class GroupedQuery(Attention):
    """Grouped-query attention: several query heads share a head of keys and values (Ainslie 2023, arXiv:2305.13245).

    head_h = softmax(q_h k_gᵀ / sqrt(D)) v_g with g = floor(h G / H), out = [head_1 … head_H] W_o: H query heads in G
    = kv_heads groups of neighbours. G = 1 is multi-query attention (Shazeer 2019, arXiv:1911.02150), G = H is
    `multihead`. The cache holds G heads, G / H of the bytes of `multihead`, and no key is ever repeated to make the
    scores.

    It supports all positional-encoding hooks. Keys are rotated before they are cached, as G heads; a term on the scores
    that an encoding adds sees H heads of queries and H of keys, each key head repeated for its group (only for an
    encoding that has such a term); a term on the values sees the weights of H heads. Dropout is applied to the
    attention weights.

    x [B, T, C], source [B, S, C] → [B, T, C]; keys and values [B, G, S, D] with D = d_model / num_heads.

    Options:
        kv_heads: G.
        bias: whether the four projections have one.

    Raises:
        ValueError: num_heads does not divide d_model, or kv_heads does not divide num_heads; either is below 1.
    """

    supports = frozenset({"embed", "rotate", "bias", "scores", "values"})

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float,
        inner_norm: Callable[[int], Norm] | None = None,
        projection_norm: Callable[[int], Norm] | None = None,
        kv_heads: int = 1,
        bias: bool = True,
    ):
        super().__init__()
        _, _, head_dim = self.geometry(d_model, num_heads, kv_heads)
        self.num_heads, self.kv_heads = num_heads, kv_heads
        widths = [d_model, kv_heads * head_dim, kv_heads * head_dim]
        self.query, self.key, self.value = (
            projection(d_model, width, bias, projection_norm, head_dim) for width in widths
        )
        self.output = Linear(d_model, d_model, bias)
        self.dropout = Dropout(dropout)
        self.inner_norm = inner_norm(d_model) if inner_norm is not None else None

    @classmethod
    def geometry(cls, d_model: int, num_heads: int, kv_heads: int = 1, **options: object) -> Geometry:
        head_dim = width_of_head(d_model, num_heads)
        at_least(1, kv_heads=kv_heads)
        divides(kv_heads=kv_heads, num_heads=num_heads)
        return Geometry(num_heads, kv_heads, head_dim)

    def project(self, source: Tensor, info: TokenInfo) -> KeyValue:
        key = split_heads(self.key(source), self.kv_heads)  # [B, G, S, D]
        return KeyValue(info.encoding.key(key, info.positions), split_heads(self.value(source), self.kv_heads))

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        q = split_heads(self.query(x), self.num_heads)  # [B, H, T, D]
        context = merge_heads(attend(q, kv, info, mask, self.dropout, tap))  # [B, T, C]
        return project_out(context, info, self.inner_norm, self.output)

    def branch_weights(self) -> list[Tensor]:
        return [self.value.weight, self.output.weight]
