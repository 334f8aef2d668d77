"""What the attentions with a softmax share: heads apart, heads together, and the lookup itself."""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm.layers import Dropout
from paddle_tfm.protocols import At, KeyValue, Mask, Tap


def width_of_head(d_model: int, num_heads: int, head_dim: int | None = None) -> int:
    """`head_dim`, or d_model / num_heads where it is None; ValueError where there is no such head."""
    if num_heads < 1:
        raise ValueError(f"`num_heads` must be at least 1, but is {num_heads}")
    if head_dim is None and d_model % num_heads:
        raise ValueError(f"`num_heads` must divide `d_model`, but {num_heads} does not divide {d_model}")
    if head_dim is not None and head_dim < 1:
        raise ValueError(f"`head_dim` must be at least 1, but is {head_dim}")
    return d_model // num_heads if head_dim is None else head_dim


def split_heads(x: Tensor, heads: int) -> Tensor:
    """x [B, T, H·D] → [B, H, T, D]."""
    batch, length, width = x.shape
    if length == 1:  # a step of decoding: nothing changes places
        return x.reshape([batch, heads, 1, width // heads])  # [B, 1, H·D] -> [B, H, 1, D]
    return x.reshape([batch, length, heads, width // heads]).transpose([0, 2, 1, 3])  # [B, T, H, D] -> [B, H, T, D]


def merge_heads(x: Tensor) -> Tensor:
    """x [B, H, T, D] → [B, T, H·D]."""
    batch, heads, length, width = x.shape
    if length == 1:
        return x.reshape([batch, 1, heads * width])  # [B, H, 1, D] -> [B, 1, H·D]
    return x.transpose([0, 2, 1, 3]).reshape([batch, length, heads * width])  # [B, T, H, D] -> [B, T, H·D]


def lookup(q: Tensor, kv: KeyValue, at: At, mask: Mask, dropout: Dropout, tap: Tap) -> Tensor:
    """softmax((q kᵀ + s) / sqrt(D) + mask) v + r, with s and r what the encoding adds to scores and to values.

    q [B, H, Tq, D], not yet rotated; kv [B, H, Tk, D] → [B, H, Tq, width of v]. `dropout` falls on the weights.
    """
    encoding, scale = at.encoding, q.shape[-1] ** -0.5
    q = encoding.query(q, at.positions)
    scores = paddle.matmul(q * scale, kv.key, transpose_y=True)  # [B, H, Tq, Tk]
    relative = encoding.scores(q, kv.key, at.positions, mask.k_positions)
    if relative is not None:
        scores = scores + (relative * scale).astype(scores.dtype)
    weights = F.softmax(mask.add_to(scores), -1)
    tap.observe("attention", weights)
    weights = dropout(weights)
    context = paddle.matmul(weights, kv.value)
    relative = encoding.values(weights, at.positions, mask.k_positions)
    return context if relative is None else context + relative.astype(context.dtype)
