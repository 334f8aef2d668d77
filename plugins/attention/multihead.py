"""Multi-head attention: the original of 2017."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from paddle import Tensor

from paddle_tfm import paddle_compat
from paddle_tfm.layers import Dropout, Linear, project_together
from paddle_tfm.protocols import Attention, Geometry, KeyValue, Mask, Norm, Tap, TokenInfo
from paddle_tfm_plugins.attention import _single_row
from paddle_tfm_plugins.attention._dot_product import attend, merge_heads, split_heads, width_of_head
from paddle_tfm_plugins.attention._normed import projection
from paddle_tfm_plugins.attention._projected import Unprojected, projects_later
from paddle_tfm_plugins.attention._projected import attend as attend_in_one


@dataclass(frozen=True)
class _Projected(KeyValue):
    """With the queries [B, H, 1, D] of the newest token, `source`, which came from the same product."""

    query: Tensor
    source: Tensor

    def replaced(self, key: Tensor, value: Tensor) -> KeyValue:
        return _Projected(key, value, self.query, self.source)


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
        self.num_heads = num_heads
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

    def project(self, source: Tensor, info: TokenInfo) -> KeyValue:
        if isinstance(source, np.ndarray):
            return _single_row.project(self, source, info)
        if source.shape[1] == 1 and type(self.query) is type(self.key) is type(self.value) is Linear:
            together = project_together(self, (self.query, self.key, self.value), source)
            if together is not None:  # a step of a search
                q, key, value = paddle_compat.split(split_heads(together, 3 * self.num_heads), 3, 1)
                return _Projected(info.encoding.key(key, info.positions), value, q, source)
        if type(self) is MultiHead and projects_later(self, source, info):
            return Unprojected(self, source, info)
        return self.keys_and_values(source, info)

    def keys_and_values(self, source: Tensor, info: TokenInfo) -> KeyValue:
        """Of `source` [B, S, C], each by its own product."""
        key = split_heads(self.key(source), self.num_heads)  # [B, H, S, D]
        return KeyValue(info.encoding.key(key, info.positions), split_heads(self.value(source), self.num_heads))

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        if isinstance(x, np.ndarray):
            return _single_row.attend(self, x, kv, info, mask)
        if (whole := attend_in_one(self, x, kv, mask, tap)) is not None:
            return whole
        same = type(kv) is _Projected and kv.source is x
        q = kv.query if same else split_heads(self.query(x), self.num_heads)  # [B, H, T, D]
        context = merge_heads(attend(q, kv, info, mask, self.dropout, tap))  # [B, T, H·D]
        if self.inner_norm is not None:
            context = self.inner_norm(context, info.valid, info.positions)
        return self.output(context)

    def computes_arrays(self) -> bool:
        return self.inner_norm is None and all(type(each) is Linear for each in self.projections())

    def projections(self) -> tuple[Linear, Linear, Linear, Linear]:
        """Of queries, keys, values, and of the output."""
        return self.query, self.key, self.value, self.output

    def branch_weights(self) -> list[Tensor]:
        return [self.value.weight, self.output.weight]
