"""Heads that are each as wide as the model."""

from __future__ import annotations

from paddle_tfm.protocols import Geometry
from paddle_tfm_plugins.attention._dot_product import width_of_head
from paddle_tfm_plugins.attention.multihead import MultiHead


class FullWidthHeads(MultiHead):
    """Multi-head attention whose heads are each d_model wide instead of d_model / num_heads (variant of
    arXiv:1706.03762).

    head_h = softmax(q_h k_hᵀ / sqrt(C)) v_h with q_h, k_h, v_h [B, T, C]; out = [head_1 … head_H] W_o, W_o [H·C, C].
    The common misreading of "multi-head": num_heads times the weights, the scores' work and the cache of `multihead`.

    x [B, T, C], source [B, S, C] → [B, T, C]; keys and values [B, H, S, C].

    Options:
        bias: whether the four projections have one.

    Raises:
        ValueError: num_heads is below 1.
    """

    fixed_options = frozenset({"head_dim"})

    def __init__(self, *, d_model: int, **parent):
        super().__init__(d_model=d_model, head_dim=d_model, **parent)

    @classmethod
    def geometry(cls, d_model: int, num_heads: int, **options: object) -> Geometry:
        return Geometry(num_heads, num_heads, width_of_head(d_model, num_heads, d_model))
