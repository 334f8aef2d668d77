"""What the attentions with a softmax share: heads apart, heads together, and attention itself."""

from __future__ import annotations

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm import memory, place
from paddle_tfm.kernels import examples, op
from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import KeyValue, Mask, Norm, PositionalEncoding, Tap, TokenInfo
from paddle_tfm.validators import divides, matrix_side

# Numbers for each head, query and key at once, as measured: scores, the mask over them, their softmax, what is between;
# and where the encoding adds a term to scores or values, its tables of places too.
HELD, HELD_WITH_TERMS = 6, 20


def width_of_head(d_model: int, num_heads: int, head_dim: int | None = None) -> int:
    """`head_dim`, or d_model / num_heads where it is None; ValueError where there is no such head."""
    matrix_side(num_heads=num_heads, head_dim=head_dim)
    if head_dim is None:
        divides(num_heads=num_heads, d_model=d_model)
    return d_model // num_heads if head_dim is None else head_dim


def split_heads(x: Tensor, heads: int) -> Tensor:
    """x [B, T, H·D] → [B, H, T, D]."""
    batch, length, width = x.shape
    return x.reshape([batch, length, heads, width // heads]).transpose([0, 2, 1, 3])  # [B, T, H, D] -> [B, H, T, D]


def merge_heads(x: Tensor) -> Tensor:
    """x [B, H, T, D] → [B, T, H·D]."""
    batch, heads, length, width = x.shape
    return x.transpose([0, 2, 1, 3]).reshape([batch, length, heads * width])  # [B, T, H, D] -> [B, T, H·D]


def require_memory(rows: int, heads: int, queries: int, keys: int, encoding: PositionalEncoding | None = None) -> None:
    """Raises MemoryError where the scores of so many pairs would fill the memory: a long text, outside of training."""
    if queries > 1 and place.on_cpu():
        terms = encoding is not None and encoding.uses() & {"scores", "values"}
        size = 4 * (HELD_WITH_TERMS if terms else HELD) * rows * heads * queries * keys
        memory.require(size, f"attention of {queries:,} tokens to {keys:,}")


def scores_of(q: Tensor, key: Tensor, info: TokenInfo, mask: Mask, scale: float | Tensor | None = None) -> Tensor:
    """(q kᵀ + s) · scale before the mask, q rotated here and s the term of the encoding; scale None: 1 / sqrt(D).

    q [B, H, Tq, D], key [B, G, Tk, D] → [B, H, Tq, Tk]. Where G < H, head h attends to the keys of head h // (H / G).

    Raises:
        MemoryError: the memory that is free does not hold them.
    """
    encoding = info.encoding
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    q = encoding.query(q, info.positions)
    heads, groups = q.shape[1], key.shape[1]
    require_memory(q.shape[0], heads, q.shape[2], key.shape[2], encoding)
    if groups == heads:
        scores = paddle.matmul(q * scale, key, transpose_y=True)  # [B, H, Tq, Tk]
    else:
        scores = _by_groups(q * scale, key, transpose=True)
        if "scores" in encoding.uses():
            key = key.repeat_interleave(heads // groups, 1)  # [B, G, Tk, D] -> [B, H, Tk, D]: a head's own keys
    relative = encoding.scores(q, key, info.positions, mask.k_positions)
    return scores if relative is None else scores + (relative * scale).astype(scores.dtype)


def gather(weights: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, dropout: Dropout, tap: Tap) -> Tensor:
    """drop(weights) · v + r, with r the term that the encoding adds to values. The weights are recorded.

    weights [B, H, Tq, Tk], v [B, G, Tk, W] → [B, H, Tq, W]; G as in `scores_of`.
    """
    tap.record("attention", weights)
    weights, value = dropout(weights), kv.value
    grouped = value.shape[1] != weights.shape[1]
    context = _by_groups(weights, value, transpose=False) if grouped else paddle.matmul(weights, value)
    relative = info.encoding.values(weights, info.positions, mask.k_positions)
    return context if relative is None else context + relative.astype(context.dtype)


@op
def attend(
    q: Tensor,
    kv: KeyValue,
    info: TokenInfo,
    mask: Mask,
    dropout: Dropout,
    tap: Tap,
    scale: float | Tensor | None = None,
) -> Tensor:
    """softmax((q kᵀ + s) · scale + mask) v + r, with s and r the terms that the encoding adds to scores and values.

    q [B, H, Tq, D], not yet rotated; kv [B, G, Tk, D] → [B, H, Tq, width of v]. Scale and G as in `scores_of`.
    `dropout` is applied to the weights.
    """
    weights = F.softmax(mask.add_to(scores_of(q, kv.key, info, mask, scale)), -1)
    return gather(weights, kv, info, mask, dropout, tap)


@examples(attend)
def _attend_examples(rng: np.random.Generator) -> tuple[object, ...]:
    """Heads with keys of their own or shared ones, texts of several lengths, causal or not."""
    batch, groups, width = (int(rng.choice(sizes)) for sizes in ((1, 2, 3), (1, 2), (4, 6, 16)))
    causal, heads, queries = (
        bool(rng.random() < 0.4),
        groups * int(rng.choice([1, 1, 2])),
        int(rng.choice([1, 2, 7, 33])),
    )
    keys = queries if causal else int(rng.choice([1, 5, 19]))
    q, key, value = (
        paddle.to_tensor(rng.normal(size=[batch, *shape]).astype("float32"))
        for shape in ([heads, queries, width], [groups, keys, width], [groups, keys, width + int(rng.integers(3))])
    )
    positions = paddle.arange(queries, dtype="int64").unsqueeze(0), paddle.arange(keys, dtype="int64").unsqueeze(0)
    valid = paddle.to_tensor(np.arange(keys) < rng.integers(1, keys + 1, [batch, 1]))
    info = TokenInfo(PositionalEncoding(), positions[0], paddle.ones([batch, queries], "bool"))
    scale = None if rng.random() < 0.5 else float(rng.uniform(0.1, 1.0))
    mask, tap = Mask(*positions, valid, causal), Tap(recording=bool(rng.random() < 0.1))
    return q, KeyValue(key, value), info, mask, Dropout(0.3), tap, scale


def project_out(context: Tensor, info: TokenInfo, inner_norm: Norm | None, output: Linear) -> Tensor:
    """Heads side by side [B, T, H·D], through the placement's norm if there is one, projected → [B, T, C]."""
    if inner_norm is not None:
        context = inner_norm(context, info.valid, info.positions)
    return output(context)


def _by_groups(x: Tensor, shared: Tensor, transpose: bool) -> Tensor:
    """x [B, H, T, I] times the matrix that each group of H / G neighbouring heads shares, [B, G, I, O] ([B, G, O, I]
    with `transpose`) → [B, H, T, O]. The heads of a group are rows of one product: nothing is repeated."""
    batch, heads, length, width = x.shape
    rows = x.reshape([batch, shared.shape[1], -1, width])  # [B, H, T, I] -> [B, G, H/G·T, I]
    product = paddle.matmul(rows, shared, transpose_y=transpose)
    return product.reshape([batch, heads, length, product.shape[3]])  # [B, G, H/G·T, O] -> [B, H, T, O]
