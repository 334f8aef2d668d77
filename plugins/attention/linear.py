"""Attention without a softmax, whose past is a matrix of fixed size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import paddle
from paddle import Tensor

from paddle_tfm.layers import Linear
from paddle_tfm.protocols import Attention, Geometry, LayerSite, Mask, Norm, Tap, TokenInfo
from paddle_tfm_plugins.attention._dot_product import (
    merge_heads,
    project_out,
    require_memory,
    split_heads,
    width_of_head,
)

EPS = 1e-30  # the smallest denominator of a row that sees something


@dataclass(frozen=True)
class Sums:
    """Sums over any number of tokens: Σ φ(k) vᵀ [B, H, D, D] and Σ φ(k) [B, H, 1, D]."""

    outer: Tensor
    key: Tensor

    def extend(self, new: Sums) -> Sums:
        return Sums(self.outer + new.outer, self.key + new.key)

    def select(self, rows: Tensor) -> Sums:
        return Sums(self.outer.index_select(rows, 0), self.key.index_select(rows, 0))


@dataclass(frozen=True)
class Chunk:
    """The newest tokens one by one, φ(k) and v [B, H, T, D], after `past`, all earlier ones folded (None: none)."""

    key: Tensor
    value: Tensor
    past: Sums | None = None

    def folded(self) -> Sums:
        """All tokens so far, those of the chunk too."""
        sums = fold(self.key, self.value)
        return sums if self.past is None else self.past.extend(sums)

    def extend(self, new: Chunk) -> Chunk:
        return Chunk(new.key, new.value, self.folded())

    def select(self, rows: Tensor) -> Chunk:
        past = None if self.past is None else self.past.select(rows)
        return Chunk(self.key.index_select(rows, 0), self.value.index_select(rows, 0), past)


def phi(x: Tensor) -> Tensor:
    """elu(x) + 1, written so that it keeps its digits where it is small: exp(x) up to 0, x + 1 above."""
    return paddle.where(x > 0, x + 1.0, paddle.exp(x.clip(max=0.0)))


def fold(key: Tensor, value: Tensor) -> Sums:
    """φ(k), v [B, H, T, D] → their sums over T."""
    return Sums(paddle.matmul(key, value, transpose_x=True), key.sum(2, keepdim=True))


class LinearAttention(Attention):
    """Linear attention: φ(q) Σ φ(k) vᵀ / φ(q) Σ φ(k), a past of fixed size (Katharopoulos 2020, arXiv:2006.16236).

    φ(x) = elu(x) + 1 > 0. Where each position sees all of the source, `project` folds the source into two sums; in the
    decoder's self-attention a step folds what came before into the same sums, so that a decoded token costs the same
    however long the output is, and the tokens of one call attend to each other through the masked T × T form. Padding
    adds nothing to the sums; a row that sees nothing gives zero. There is no dropout on weights: there are no weights.

    It supports encodings at the embedding only. A bias or a term on the scores has no scores to act on. A rotation is
    refused too: it would act before φ, and φ(R_i q)ᵀ φ(R_j k) is no function of i − j.

    x [B, T, C], source [B, S, C] → [B, T, C]; state [B, H, D, D] and [B, H, 1, D] with D = d_model / num_heads.

    Options:
        bias: whether the four projections have one.

    Raises:
        ValueError: num_heads does not divide d_model, or is below 1.
    """

    supports = frozenset({"embed"})

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        inner_norm: Callable[[int], Norm] | None = None,
        site: LayerSite | None = None,
        bias: bool = True,
    ):
        super().__init__()
        width_of_head(d_model, num_heads)  # refuses what it must
        self.num_heads = num_heads
        self.causal = site is not None and site.causal
        self.query = Linear(d_model, d_model, bias)
        self.key = Linear(d_model, d_model, bias)
        self.value = Linear(d_model, d_model, bias)
        self.output = Linear(d_model, d_model, bias)
        self.inner_norm = inner_norm(d_model) if inner_norm is not None else None

    @classmethod
    def geometry(cls, d_model: int, num_heads: int, **options: object) -> Geometry:
        return Geometry(num_heads, num_heads, width_of_head(d_model, num_heads))

    def project(self, source: Tensor, info: TokenInfo) -> Chunk | Sums:
        key = phi(split_heads(self.key(source), self.num_heads))  # [B, H, S, D]
        key = key * info.valid.astype(key.dtype).unsqueeze([1, 3])  # [B, 1, S, 1]: padding adds nothing
        value = split_heads(self.value(source), self.num_heads)
        return Chunk(key, value) if self.causal else fold(key, value)

    def forward(self, x: Tensor, kv: Chunk | Sums, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        q = phi(split_heads(self.query(x), self.num_heads))  # [B, H, T, D]
        past = kv.past if self.causal else kv
        top, bottom = 0.0, 0.0
        if past is not None:
            top = paddle.matmul(q, past.outer)  # [B, H, T, D]
            bottom = bottom + paddle.matmul(q, past.key, transpose_y=True)  # [B, H, T, 1]
        if self.causal:
            require_memory(*q.shape[:3], q.shape[2])
            visible = info.positions.unsqueeze(2) >= info.positions.unsqueeze(1)  # [B|1, T, T]
            scores = paddle.matmul(q, kv.key, transpose_y=True) * visible.unsqueeze(1).astype(q.dtype)  # [B, H, T, T]
            top = top + paddle.matmul(scores, kv.value)
            bottom = bottom + scores.sum(-1, keepdim=True)
        # What sees nothing divides by 1: by a tiny number its output is zero too, but its gradient may be infinite.
        bottom = paddle.where(bottom > 0, bottom.clip(min=EPS), paddle.ones_like(bottom))
        context = merge_heads(top / bottom)  # [B, T, C]
        return project_out(context, info, self.inner_norm, self.output)

    def branch_weights(self) -> list[Tensor]:
        return [self.value.weight, self.output.weight]
