"""What decoding has seen so far, as values: a step gives the next state and leaves this one as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import paddle
from paddle import Tensor

from paddle_tfm.protocols import KeyValue, Mask, Memory


@dataclass(frozen=True)
class LayerState:
    """The key/value caches of a layer: of its self-attention over the tokens so far (behind those of the memory, where
    it reads that too), and of its cross-attention; and the last inputs [B, reach, C] of each sublayer that reads what
    stands before its tokens, by the sublayer's name."""

    self_kv: KeyValue | None = None
    cross_kv: KeyValue | None = None
    before: Mapping[str, Tensor] = field(default_factory=dict)

    def select(self, rows: Tensor, cross_rows: Tensor | None) -> LayerState:
        """The rows `rows`, in that order, and of the cross-attention cache `cross_rows` (None: as it is)."""
        return LayerState(
            self.self_kv.select(rows) if self.self_kv is not None else None,
            self.cross_kv if self.cross_kv is None or cross_rows is None else self.cross_kv.select(cross_rows),
            {name: inputs.index_select(rows, 0) for name, inputs in self.before.items()},
        )


@dataclass(frozen=True)
class DecoderState:
    """All that decoding depends on besides the next tokens: the memory (None in a decoder-only model), the key/value
    caches of each layer (None in a pass that keeps nothing, which no other may follow), and number, positions (None
    before the first) and validity (None: all real) of the tokens so far. `memory_mask` is what the last step saw of
    the memory, of which the next sees the same; `head` is the state of the output head (`Head.step`).

    Each `group` rows, one after another, are of one sentence: the caches of the cross-attention have one row for them.
    """

    memory: Memory | None
    layers: tuple[LayerState | None, ...]
    length: int = 0
    positions: Tensor | None = None
    valid: Tensor | None = None
    memory_mask: Mask | None = None
    group: int = 1
    head: tuple[Tensor, ...] = ()

    def select(self, rows: Tensor, same_memory: bool = False, group: int = 1) -> DecoderState:
        """The rows `rows` (int64 [B'], repeats allowed), in that order. `same_memory`: each new row has the source
        sentence of the row in its place before, so that the memory needs no reordering. `group`: each so many new rows
        have one source sentence."""
        same_cache = same_memory and group == self.group
        return DecoderState(
            self.memory if same_memory or self.memory is None else self.memory.select(rows),
            tuple(
                layer and layer.select(rows, None if same_cache else self._cache_rows(rows, group))
                for layer in self.layers
            ),
            self.length,
            self.positions,
            None if self.valid is None else self.valid.index_select(rows, 0),
            self.memory_mask if same_cache else None,
            group,
            tuple(part.index_select(rows, 0) for part in self.head),
        )

    def _cache_rows(self, rows: Tensor, group: int) -> Tensor:
        """The rows of the cross-attention caches for `rows`, one for each `group`."""
        return paddle.to_tensor(rows.numpy()[::group] // self.group)
