"""What travels with a pass: where a layer stands, which tokens a call is about, what the decoder attends to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import paddle
from paddle import Tensor

if TYPE_CHECKING:
    from paddle_tfm.protocols.position import PositionalEncoding

Tokens = TypeVar("Tokens", bound="Cache")


@dataclass(frozen=True)
class LayerSite:
    """Where a component stands: `stack` (encoder | decoder), `sublayer` (self | cross | feed_forward | final),
    `layer`."""

    stack: str
    sublayer: str
    layer: int
    encoder_layers: int
    decoder_layers: int

    @property
    def causal(self) -> bool:
        """Whether a position here must not see later ones: the decoder's self-attention."""
        return self.stack == "decoder" and self.sublayer == "self"

    @property
    def depth(self) -> int:
        """How many layers its stack has."""
        return self.encoder_layers if self.stack == "encoder" else self.decoder_layers

    def __str__(self) -> str:
        return f"{self.stack}.{self.layer}.{self.sublayer}"


class Geometry(NamedTuple):
    """The head layout of an attention: encodings are built from it."""

    score_heads: int
    kv_heads: int
    head_dim: int


@dataclass(frozen=True)
class TokenInfo:
    """The tokens that a call is about: their encoding, positions int64 [B|1, T], and valid bool [B, T] (True: real).

    `shared` is empty at the start of a pass through a stack, and ends with it: what a layer puts there, under a key of
    its own, the layers above find. The memory's keys and values are no pass: each layer projects them with a mapping of
    its own.

    `before` [B, reach, C] are the inputs before them of a sublayer that declares `reach`; None: there are none.
    """

    encoding: PositionalEncoding
    positions: Tensor
    valid: Tensor
    shared: dict[str, Tensor] = field(default_factory=dict)
    before: Tensor | None = None

    def window(self, x: Tensor, reach: int) -> Tensor:
        """The input x [B, T, C] of a sublayer behind the `reach` inputs before it: [B, reach + T, C]. Padding is zero,
        and so is what would stand before the first token."""
        real = x * self.valid.unsqueeze(2).astype(x.dtype)
        before = paddle.zeros([x.shape[0], reach, x.shape[2]], x.dtype) if self.before is None else self.before
        return paddle.concat([before, real], 1)


@dataclass(frozen=True)
class Cache:
    """What a layer keeps of each token, tensors [B, H, S, …]: the fields of a subclass."""

    def extend(self: Tokens, new: Tokens) -> Tokens:
        """These tokens followed by `new` ones."""
        pairs = zip(vars(self).values(), vars(new).values())
        return type(self)(*(paddle.concat([*pair], 2) for pair in pairs))

    def select(self: Tokens, rows: Tensor) -> Tokens:
        """The sentences `rows` (int64 [B']) of the batch, in that order: what beam search needs."""
        return type(self)(*(part.index_select(rows, 0) for part in vars(self).values()))


@dataclass(frozen=True)
class KeyValue(Cache):
    """The key/value cache of a layer, [B, H, S, D] each. An attention may have another `Cache`, or its own type."""

    key: Tensor
    value: Tensor


@dataclass(frozen=True)
class Memory:
    """What the decoder attends to: the encoder's output [B, S, C] with positions, validity, and `copy_ids` [B, S], the
    source tokens as ids of the target vocabulary, extended by `extra` ids for words that it lacks."""

    x: Tensor
    positions: Tensor
    valid: Tensor
    copy_ids: Tensor
    extra: int = 0

    def select(self, rows: Tensor) -> Memory:
        """The sentences `rows` of the batch, in that order."""
        x, valid, copy_ids = (part.index_select(rows, 0) for part in (self.x, self.valid, self.copy_ids))
        positions = self.positions if self.positions.shape[0] == 1 else self.positions.index_select(rows, 0)
        return replace(self, x=x, positions=positions, valid=valid, copy_ids=copy_ids)
