"""Attention weights without a comparison of tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm.language import _
from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import (
    Attention,
    Cache,
    Geometry,
    LayerSite,
    Mask,
    Norm,
    Tap,
    TokenInfo,
    keep_initial,
    maps_as,
    no_decay,
)
from paddle_tfm.validators import at_least, matrix_side, one_of
from paddle_tfm_plugins.attention._dot_product import (
    merge_heads,
    project_out,
    require_memory,
    split_heads,
    width_of_head,
)


@dataclass(frozen=True)
class Values(Cache):
    """What is averaged, [B, H, T, D]: there are no keys."""

    value: Tensor


class Synthesizer(Attention):
    """Synthesizer: weights over positions made from the query alone, or from no token at all (Tay 2020,
    arXiv:2005.00743).

    head_h = softmax(B_h) v_h, out = [head_1 … head_H] W_o, where the score B_h[i, j] of the key at position j is, by
    `mode`:

    - dense: max(0, x_i W_1 + b_1) W_2[:, j] + b_2[j]; a small network has an output for each position up to max_length.
    - random: R_h[i, j], a trained table that is the same for all texts; with `rank` r, R_h = R_1 R_2ᵀ, R_1 and R_2
      [max_length, r] (the paper's "factorized random").

    i and j are positions. The softmax goes over the keys that the query may see, without a division by sqrt(D); dropout
    is applied to its weights. Positions from max_length − 1 on share the last row and the last column; rows and columns
    that training never reached keep their initial values, so outputs longer than those trained on cannot be expected to
    work.
    What is not in the paper: a bias on the scores (ALiBi) is added where a recipe asks for one.

    The paper's equations are those of one head. Here each head has a network of its own, whose hidden layer has C / H
    units unless `hidden` says otherwise, so that all heads together have a W_1 of the size of `multihead`'s W_q.

    x [B, T, C], source [B, S, C] → [B, T, C]; values [B, H, S, D] with D = d_model / num_heads; no keys.

    Options:
        mode: dense or random.
        hidden: units of each head's hidden layer (dense); None: d_model / num_heads.
        rank: r above (random); None: the full table, max_length² numbers a head.
        bias: whether the network and the projections have one.

    Raises:
        ValueError: in cross-attention; num_heads does not divide d_model; max_length, hidden or rank is below 1, or one
            of the last two above 65,536; hidden is set for random, or rank for dense.
    """

    supports = frozenset({"embed", "bias"})
    ends_at_max_length = True
    expected_failures: ClassVar[dict[str, str]] = {
        "attends": "mode random has the same weights for every text: no query and no key is read",
        "bidirectional": "a score belongs to two places of the text, not to what stands there",
        "temperature": "scores are no products of queries and keys: the method has no sqrt(head_dim), and the scores "
        "of mode random are drawn",
    }

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float,
        max_length: int,
        inner_norm: Callable[[int], Norm] | None = None,
        site: LayerSite | None = None,
        mode: Literal["dense", "random"] = "dense",
        hidden: int | None = None,
        rank: int | None = None,
        bias: bool = True,
    ):
        super().__init__()
        width = width_of_head(d_model, num_heads)
        if site is not None and site.sublayer == "cross":
            raise ValueError(
                _(
                    "its weights belong to pairs of positions of one text, which says nothing about a source and its "
                    "target"
                )
            )
        at_least(1, max_length=max_length)
        matrix_side(hidden=hidden, rank=rank)
        one_of(["dense", "random"], mode=mode)
        name, value = ("rank", rank) if mode == "dense" else ("hidden", hidden)
        if value is not None:
            raise ValueError(_("`{name}` has no meaning with `mode` {mode}; leave it out").format(name=name, mode=mode))
        self.num_heads, self.max_length, self.mode = num_heads, max_length, mode
        self.hidden = self.rows = self.columns = self.column_bias = None
        if mode == "dense":
            hidden = width if hidden is None else hidden
            self.hidden = Linear(d_model, num_heads * hidden, bias)
            columns = self.create_parameter([num_heads, max_length, hidden])  # W_2 of each head, transposed
            self.columns = maps_as(columns, "input")
            if bias:
                zero = nn.initializer.Constant(0.0)
                start = self.create_parameter([num_heads, max_length, 1], default_initializer=zero)
                self.column_bias = no_decay(keep_initial(start))
        else:
            rows = self.create_parameter([num_heads, max_length, max_length if rank is None else rank])
            self.rows = maps_as(rows, "input")
            if rank is not None:
                self.columns = maps_as(self.create_parameter([num_heads, max_length, rank]), "input")
        self.value = Linear(d_model, d_model, bias)
        self.output = Linear(d_model, d_model, bias)
        self.dropout = Dropout(dropout)
        self.inner_norm = inner_norm(d_model) if inner_norm is not None else None

    @classmethod
    def geometry(cls, d_model: int, num_heads: int, **options: object) -> Geometry:
        return Geometry(num_heads, num_heads, width_of_head(d_model, num_heads))

    def project(self, source: Tensor, info: TokenInfo) -> Values:
        return Values(split_heads(self.value(source), self.num_heads))

    def forward(self, x: Tensor, kv: Values, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        require_memory(x.shape[0], self.num_heads, x.shape[1], kv.value.shape[2])
        scores = self._scores(x, info.positions, mask.k_positions)  # [B, H, Tq, Tk]
        weights = F.softmax(mask.add_to(scores), -1)
        tap.record("attention", weights)
        context = merge_heads(paddle.matmul(self.dropout(weights), kv.value))  # [B, T, C]
        return project_out(context, info, self.inner_norm, self.output)

    def _scores(self, x: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        """[B, H, Tq, Tk]: the query's score for each position, at the keys' positions."""
        if self.mode == "dense":
            q, columns = split_heads(F.relu(self.hidden(x)), self.num_heads), self.columns  # [B, H, Tq, W], [H, L, W]
            if self.column_bias is not None:  # one more unit, which is 1
                q = paddle.concat([q, paddle.ones([*q.shape[:3], 1], q.dtype)], -1)
                columns = paddle.concat([columns, self.column_bias], -1)
            return paddle.matmul(q, self._at(columns, k_positions), transpose_y=True)
        q = self._at(self.rows, q_positions)  # [B|1, H, Tq, W]
        if self.columns is None:  # W is max_length: the columns of the keys are picked by ones
            k = F.one_hot(self._inside(k_positions), self.max_length).astype(q.dtype).unsqueeze(1)  # [B|1, 1, Tk, W]
        else:
            k = self._at(self.columns, k_positions)  # [B|1, H, Tk, W]
        scores = paddle.matmul(q, k, transpose_y=True)
        return scores.expand([x.shape[0], *scores.shape[1:]])

    def _at(self, table: Tensor, positions: Tensor) -> Tensor:
        """The vectors of a table [H, max_length, W] at positions [B|1, T] → [B|1, H, T, W]."""
        rows, length = positions.shape
        picked = table.index_select(self._inside(positions).reshape([-1]), 1)  # [H, B|1·T, W]
        return picked.reshape([table.shape[0], rows, length, table.shape[2]]).transpose([1, 0, 2, 3])

    def _inside(self, positions: Tensor) -> Tensor:
        return positions.clip(0, self.max_length - 1)

    def branch_weights(self) -> list[Tensor]:
        return [self.value.weight, self.output.weight]
