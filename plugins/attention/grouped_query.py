"""Queries in many heads, keys and values in few: a smaller cache."""

from __future__ import annotations

from collections.abc import Callable

from paddle_tfm.protocols import Geometry, Norm
from paddle_tfm.validators import at_least, divides
from paddle_tfm_plugins.attention._dot_product import width_of_head
from paddle_tfm_plugins.attention._normed import projection
from paddle_tfm_plugins.attention.multihead import MultiHead


class GroupedQuery(MultiHead):
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
        _, _, head_dim = self.geometry(d_model, num_heads, kv_heads)
        super().__init__(d_model, num_heads, dropout, inner_norm, projection_norm, bias)
        self.kv_heads, width = kv_heads, kv_heads * head_dim
        self.key, self.value = (projection(d_model, width, bias, projection_norm, head_dim) for _ in range(2))

    @classmethod
    def geometry(cls, d_model: int, num_heads: int, kv_heads: int = 1, **options: object) -> Geometry:
        head_dim = width_of_head(d_model, num_heads)
        at_least(1, kv_heads=kv_heads)
        divides(kv_heads=kv_heads, num_heads=num_heads)
        return Geometry(num_heads, kv_heads, head_dim)
