"""A stack of layers: the encoder, or the decoder, which keeps a state and, where there is an encoder, looks across."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import paddle
from paddle import Tensor, nn

from paddle_tfm import randomness
from paddle_tfm.layers import Dropout
from paddle_tfm.protocols import (
    Attention,
    FeedForward,
    KeyValue,
    Mask,
    Memory,
    Norm,
    Placement,
    PositionalEncoding,
    Tap,
    TokenInfo,
)


@dataclass(frozen=True)
class LayerState:
    """What a layer remembers between steps: its own keys and values so far, and those of the memory."""

    own: KeyValue | None = None
    cross: KeyValue | None = None

    def select(self, rows: Tensor, same_memory: bool = False) -> LayerState:
        """The rows `rows`, in that order; with `same_memory` those of the memory stay as they are."""
        return LayerState(
            self.own.select(rows) if self.own is not None else None,
            self.cross if self.cross is None or same_memory else self.cross.select(rows),
        )


class Layer(nn.Layer):
    """Self-attention, in a decoder with an encoder cross-attention, and feed-forward, each inside the placement's
    wrapping."""

    def __init__(
        self,
        self_attention: Attention,
        cross_attention: Attention | None,
        feed_forward: FeedForward,
        placement: Placement,
    ):
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.placement = placement

    def forward(self, x: Tensor, past: LayerState, own: AttentionContext, across: AttentionContext | None, tap: Tap):
        """x [B, T, C] → (x, the state with these T tokens added)."""
        kept = past.own

        def self_attend(y: Tensor) -> Tensor:
            nonlocal kept
            new = self.self_attention.project(y, own.info)
            kept = new if past.own is None else past.own.extend(new)
            return observed("self", lambda tap: self.self_attention(y, kept, own.info, own.mask, tap))

        def cross_attend(y: Tensor) -> Tensor:
            return observed("cross", lambda tap: self.cross_attention(y, past.cross, across.info, across.mask, tap))

        def feed_forward(y: Tensor) -> Tensor:
            return observed("feed_forward", lambda tap: self.feed_forward(y, own.info, tap))

        def observed(name: str, branch) -> Tensor:
            inner = tap.within(name)
            y = branch(inner)
            inner.record("branch", y)
            return y

        sublayers = (
            [self_attend, feed_forward] if self.cross_attention is None else [self_attend, cross_attend, feed_forward]
        )
        x = self.placement(x, sublayers, own.info)
        return x, LayerState(kept, past.cross)

    def branches(self) -> list[Attention | FeedForward]:
        """The sublayers in order."""
        return [part for part in (self.self_attention, self.cross_attention, self.feed_forward) if part is not None]


@dataclass(frozen=True)
class AttentionContext:
    """Where the queries of a pass stand (`at`) and what they may see (`mask`)."""

    info: TokenInfo
    mask: Mask


class Stack(nn.Layer):
    """Layers between an embedding and, where the placement asks for it, a final norm.

    `encodings` (and `cross_encodings`) hold one encoding for the stack, or one a layer.
    """

    def __init__(
        self,
        name: str,
        layers: Sequence[Layer],
        encodings: Sequence[PositionalEncoding],
        cross_encodings: Sequence[PositionalEncoding],
        final_norm: Norm | None,
        dropout: float,
    ):
        super().__init__()
        self.stack_name = name
        self.layers = nn.LayerList(list(layers))
        self.encodings = nn.LayerList(list(encodings))
        self.cross_encodings = nn.LayerList(list(cross_encodings))
        self.final_norm = final_norm
        self.drop = Dropout(dropout)

    def enter(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Embedded tokens [B, T, C] with positions added and dropout applied, and the positions of this pass."""
        encoding = self.encodings[0]
        context = randomness.current_context()
        if self.training and context is not None:
            key = (context.seed, "positions", self.stack_name, context.step, context.micro_batch)
            positions = encoding.remap(positions, lambda: randomness.generator(*key))
        return self.drop(encoding.embed(x, positions)), positions

    def leave(self, x: Tensor, positions: Tensor, valid: Tensor) -> Tensor:
        """The output [B, T, C] after the final norm, if there is one."""
        return x if self.final_norm is None else self.final_norm(x, valid, positions)

    def places(
        self,
        encodings: Sequence[PositionalEncoding],
        q_positions: Tensor,
        q_valid: Tensor,
        k_positions: Tensor,
        k_valid: Tensor,
        causal: bool,
    ) -> list[AttentionContext]:
        """A place for each layer; layers that share an encoding share the mask, computed once."""
        mask = Mask(q_positions, k_positions, k_valid, causal, encodings[0])
        masks = [mask] + [mask.with_encoding(encoding) for encoding in list(encodings)[1:]]
        made = [
            AttentionContext(TokenInfo(encoding, q_positions, q_valid), mask)
            for encoding, mask in zip(encodings, masks)
        ]
        return made if len(made) == len(self.layers) else made * len(self.layers)


class Encoder(Stack):
    """x [B, S, C] → the same, every position seeing every real one."""

    def forward(self, x: Tensor, valid: Tensor, tap: Tap) -> tuple[Tensor, Tensor]:
        """Returns the output and the positions [1, S] of this pass."""
        positions = paddle.arange(x.shape[1], dtype="int64").unsqueeze(0)
        x, positions = self.enter(x, positions)
        tap.within("encoder").record("input", x)
        places = self.places(list(self.encodings), positions, valid, positions, valid, causal=False)
        for i, (layer, place) in enumerate(zip(self.layers, places)):
            x, _ = layer(x, LayerState(), place, None, tap.within(f"encoder.{i}"))
        return self.leave(x, positions, valid), positions


@dataclass(frozen=True)
class DecoderState:
    """All that decoding depends on besides the next tokens: the memory (None in a decoder-only model), each layer's state,
    positions and validity of the tokens so far (None before the first)."""

    memory: Memory | None
    layers: tuple[LayerState, ...]
    length: int = 0
    positions: Tensor | None = None
    valid: Tensor | None = None

    def select(self, rows: Tensor, same_memory: bool = False) -> DecoderState:
        """The rows `rows` (int64 [B'], repeats allowed), in that order. `same_memory`: row for row they look at the same
        sentence as before, so that only what has been written is put in another order."""
        return DecoderState(
            self.memory if same_memory or self.memory is None else self.memory.select(rows),
            tuple(layer.select(rows, same_memory) for layer in self.layers),
            self.length,
            self.positions,
            None if self.valid is None else self.valid.index_select(rows, 0),
        )


class Decoder(Stack):
    """Causal self-attention over the output so far, cross-attention over the memory, if there is one. Training is one step
    of T tokens from an empty state (invariant 2 of `paddle_tfm.protocols`)."""

    def start(self, memory: Memory | None) -> DecoderState:
        """The state before the first token: the memory projected once for each layer."""
        if memory is None:
            return DecoderState(None, tuple(LayerState() for _ in self.layers))
        encodings = list(self.cross_encodings)
        encodings = encodings if len(encodings) == len(self.layers) else encodings * len(self.layers)
        states = [
            LayerState(
                None, layer.cross_attention.project(memory.x, TokenInfo(encoding, memory.positions, memory.valid))
            )
            for layer, encoding in zip(self.layers, encodings)
        ]
        return DecoderState(memory, tuple(states))

    def forward(self, x: Tensor, state: DecoderState, valid: Tensor, tap: Tap) -> tuple[Tensor, DecoderState]:
        """x [B, T, C]: the next T embedded tokens, of which `valid` [B, T] are real → (output [B, T, C], new state)."""
        positions = paddle.arange(state.length, state.length + x.shape[1], dtype="int64").unsqueeze(0)
        x, positions = self.enter(x, positions)
        tap.within("decoder").record("input", x)
        first, memory = state.positions is None, state.memory
        all_positions = positions if first else paddle.concat([state.positions, positions], 1)
        all_valid = valid if first else paddle.concat([state.valid, valid], 1)
        own = self.places(list(self.encodings), positions, valid, all_positions, all_valid, causal=True)
        across = [None] * len(self.layers)
        if memory is not None:
            across = self.places(
                list(self.cross_encodings), positions, valid, memory.positions, memory.valid, causal=False
            )
        layers = []
        for i, (layer, past) in enumerate(zip(self.layers, state.layers)):
            x, kept = layer(x, past, own[i], across[i], tap.within(f"decoder.{i}"))
            layers.append(kept)
        length = state.length + x.shape[1]
        return self.leave(x, positions, valid), DecoderState(memory, tuple(layers), length, all_positions, all_valid)
