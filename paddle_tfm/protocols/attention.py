"""Attention: how positions gather from others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import paddle
from paddle import Tensor, nn

from paddle_tfm.protocols.component import Component
from paddle_tfm.protocols.context import TokenInfo
from paddle_tfm.protocols.mask import Mask
from paddle_tfm.protocols.tap import Tap


@dataclass(frozen=True)
class KeyValue:
    """Keys and values [B, H, T, D] of the tokens seen so far. An attention may return a type of its own instead, with
    the same two methods."""

    key: Tensor
    value: Tensor

    def extend(self, new: KeyValue) -> KeyValue:
        """These tokens followed by `new` ones."""
        return KeyValue(paddle.concat([self.key, new.key], 2), paddle.concat([self.value, new.value], 2))

    def select(self, rows: Tensor) -> KeyValue:
        """The sentences `rows` (int64 [B']) of the batch, in that order: what beam search asks for."""
        return KeyValue(self.key.index_select(rows, 0), self.value.index_select(rows, 0))


class Geometry(NamedTuple):
    """The head layout of an attention: encodings are built from it."""

    score_heads: int
    kv_heads: int
    head_dim: int


class Attention(Component, nn.Layer):
    """How positions gather from others: Attention(Q, K, V) = softmax(Q Kᵀ / sqrt(D)) V and its variants.

    Givens: d_model, num_heads, dropout, site, max_length, inner_norm (a function width → Norm for the norm before the
    output projection, or None; a class without this parameter is refused by placements that need one).
    """

    kind: ClassVar[str] = "attention"
    givens = frozenset({"d_model", "num_heads", "dropout", "site", "inner_norm", "max_length"})
    settable = frozenset({"num_heads", "dropout"})
    supports: ClassVar[frozenset[str]] = frozenset({"embed"})
    """Which of an encoding's ways it honours, of {"embed", "rotate", "bias", "scores", "values"}; others are refused."""

    @classmethod
    def geometry(cls, d_model: int, num_heads: int, **options: object) -> Geometry:
        """The head layout under these options. Default: num_heads heads of d_model / num_heads."""
        return Geometry(num_heads, num_heads, d_model // num_heads)

    def project(self, source: Tensor, info: TokenInfo) -> KeyValue:
        """Keys and values of `source` [B, T, C], rotated by ``info.encoding.key``; or a type of its own."""
        raise NotImplementedError

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        """x [B, T, C] looks up `kv` → [B, T, C]. `mask` covers all of `kv`; `at` is about x."""
        raise NotImplementedError

    def branch_weights(self) -> list[Tensor]:
        """The weights that DeepNorm scales (value and output projections)."""
        return []
