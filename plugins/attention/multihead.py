"""Multi-head attention: the original of 2017."""

from __future__ import annotations

from collections.abc import Callable

from paddle import Tensor

from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import Attention, Geometry, KeyValue, Mask, Norm, Tap, TokenInfo
from paddle_tfm_plugins.attention._dot_product import attend, merge_heads, project_out, split_heads, width_of_head
from paddle_tfm_plugins.attention._normed import projection


class MultiHead(Attention):
    """Multi-head attention: each head attends to its own projection of the input (Vaswani 2017, arXiv:1706.03762).

    head_h = softmax(q_h k_hᵀ / sqrt(D)) v_h with q = x W_q, k = source W_k, v = source W_v; out = [head_1 … head_H]
    W_o. It supports all positional-encoding hooks: q and k rotated, terms added to the scores before the division by
    sqrt(D), a bias added after it, terms added to the values. Dropout is applied to the attention weights.

    x [B, T, C], source [B, S, C] → [B, T, C]; keys and values [B, H, S, D].

    Options:
        bias: whether the four projections have one.
        head_dim: D; None: d_model / num_heads.

    Raises:
        ValueError: num_heads does not divide d_model and head_dim is None; num_heads or head_dim is below 1 or
            above 65,536.
    """

    supports = frozenset({"embed", "rotate", "bias", "scores", "values"})

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float,
        inner_norm: Callable[[int], Norm] | None = None,
        projection_norm: Callable[[int], Norm] | None = None,
        bias: bool = True,
        head_dim: int | None = None,
    ):
        super().__init__()
        self.num_heads = self.kv_heads = num_heads
        of_head = width_of_head(d_model, num_heads, head_dim)
        width = num_heads * of_head
        self.query, self.key, self.value = (
            projection(d_model, width, bias, projection_norm, of_head) for _ in range(3)
        )
        self.output = Linear(width, d_model, bias)
        self.dropout = Dropout(dropout)
        self.inner_norm = inner_norm(width) if inner_norm is not None else None

    @classmethod
    def geometry(cls, d_model: int, num_heads: int, head_dim: int | None = None, **options: object) -> Geometry:
        return Geometry(num_heads, num_heads, width_of_head(d_model, num_heads, head_dim))

    def queries(self, x: Tensor) -> Tensor:
        """x [B, T, C] → [B, H, T, D], not yet rotated."""
        return split_heads(self.query(x), self.num_heads)

    def keys(self, source: Tensor) -> Tensor:
        """source [B, S, C] → [B, H, S, D], not yet rotated."""
        return split_heads(self.key(source), self.kv_heads)

    def project(self, source: Tensor, info: TokenInfo) -> KeyValue:
        value = split_heads(self.value(source), self.kv_heads)
        return KeyValue(info.encoding.key(self.keys(source), info.positions), value)

    def heads(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        """head_1 … head_H, [B, H, T, D]."""
        return attend(self.queries(x), kv, info, mask, self.dropout, tap)

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        return project_out(merge_heads(self.heads(x, kv, info, mask, tap)), info, self.inner_norm, self.output)

    def branch_weights(self) -> list[Tensor]:
        return [self.value.weight, self.output.weight]
