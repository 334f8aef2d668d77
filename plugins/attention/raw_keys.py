"""Normalized queries, and keys and values of what is not normalized."""

from __future__ import annotations

import paddle
from paddle import Tensor

from paddle_tfm.protocols import KeyValue, Mask, Tap, TokenInfo
from paddle_tfm_plugins.attention._dot_product import attend, merge_heads, project_out, split_heads
from paddle_tfm_plugins.attention.multihead import MultiHead
from paddle_tfm_plugins.norm.layer import LayerNorm


class RawKeys(MultiHead):
    """Queries of n(x), n a norm of its own, keys and values of x: pre-norm as Marian decodes it (arXiv:1804.00344).

    q = n(x) W_q, k = source W_k, v = source W_v; the rest is `multihead`. The placement must not normalize x before it:
    {name: steps, before: n, self_before: "", after: da, top: n}.

    With `first` a token at position 0 reads n(x) W_v, its own normalized value. So Marian from 1.11 on decodes with
    models whose keys and values its training normalized: its first step does, and later ones do not.

    x [B, T, C], source [B, S, C] → [B, T, C]; keys and values [B, H, S, D].

    Options:
        eps: of the norm. first: above, for a decoder's self-attention. Others: those of `multihead`.

    Raises:
        ValueError: as `multihead`.
    """

    def __init__(self, d_model: int, eps: float = 1e-6, first: bool = False, **parent):
        super().__init__(d_model=d_model, **parent)
        self.query_norm = LayerNorm(d_model, eps)
        self.first = first

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        normed = self.query_norm(x)
        q = split_heads(self.query(normed), self.num_heads)  # [B, H, T, D]
        context = merge_heads(attend(q, kv, info, mask, self.dropout, tap))  # [B, T, H·D]
        if self.first:
            context = paddle.where((info.positions == 0).unsqueeze(-1), self.value(normed), context)
        return project_out(context, info, self.inner_norm, self.output)
