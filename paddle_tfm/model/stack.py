"""Stacks of layers: the encoder, and the decoder with its state and, if the model has an encoder, cross-attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

import paddle
from paddle import Tensor, nn

from paddle_tfm import layers, randomness
from paddle_tfm.layers import Dropout
from paddle_tfm.model.state import DecoderState, LayerState
from paddle_tfm.protocols import (
    Attention,
    FeedForward,
    Mask,
    Memory,
    Norm,
    Placement,
    PositionalEncoding,
    Sublayer,
    Tap,
    TokenInfo,
)

Member = TypeVar("Member", bound=nn.Layer)


class _LayerList(nn.LayerList, Generic[Member]):
    """A `LayerList` with the type of its members, which Paddle's own does not have."""

    if TYPE_CHECKING:

        def __init__(self, sublayers: Sequence[Member]) -> None: ...

        def __iter__(self) -> Iterator[Member]: ...

        def __getitem__(self, idx: int) -> Member: ...


@dataclass(frozen=True)
class AttentionContext:
    """The queries of a pass (`info`: encoding, positions, validity) and the mask over their keys; and the memory,
    whose keys and values a pass that keeps none projects itself."""

    info: TokenInfo
    mask: Mask
    memory: Memory | None = None


class Layer(layers.Layer):
    """Self-attention, cross-attention (in the decoder of an encoder-decoder model) and feed-forward, each wrapped by
    the placement with norm, residual and dropout."""

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

    def forward(
        self,
        x: Tensor,
        state: LayerState | None,
        self_context: AttentionContext,
        cross_context: AttentionContext | None,
        tap: Tap,
    ) -> tuple[Tensor, LayerState | None]:
        """What travels between layers [B, T, …] (`Placement.enter`) → (it, the state with these T tokens added).
        `state` None: there is nothing before them, and nothing is kept.

        Raises:
            ValueError: the layer attends to a memory, but `cross_context` has none.
        """
        self_kv, info, cross_attention = None, self_context.info, self.cross_attention
        past, before = state, dict[str, Tensor]()
        if state is None and self.self_attention.reads_memory:
            context, memory = _beside(cross_context)
            past = self.start(memory, context.info.encoding)

        def self_attend(y: Tensor) -> Tensor:
            nonlocal self_kv
            if past is None:
                attend, mask = self.self_attention.attend, self_context.mask
                return run_branch("self", lambda tap: attend(y, y, info, info, mask, tap))
            seen = with_before("self", self.self_attention.reach, y)
            new = self.self_attention.project(y, seen)
            self_kv = new if past.self_kv is None else past.self_kv.extend(new)
            return run_branch("self", lambda tap: self.self_attention(y, self_kv, seen, self_context.mask, tap))

        def feed_forward(y: Tensor) -> Tensor:
            seen = with_before("feed_forward", self.feed_forward.reach, y)
            return run_branch("feed_forward", lambda tap: self.feed_forward(y, seen, tap))

        def with_before(name: str, reach: int, y: Tensor) -> TokenInfo:
            if past is None or not reach:
                return info
            seen = replace(info, before=past.before.get(name))
            before[name] = seen.window(y, reach)[:, -reach:]
            return seen

        def run_branch(name: str, branch: Callable[[Tap], Tensor]) -> Tensor:
            inner = tap.within(name)
            y = branch(inner)
            inner.record("branch", y)
            return y

        sublayers: list[Sublayer] = [self_attend, feed_forward]
        if cross_attention is not None:
            context, memory = _beside(cross_context)

            def cross_attend(y: Tensor) -> Tensor:
                shape = y.shape
                if state is None:
                    attend, mask = cross_attention.attend, context.mask
                    of_memory = TokenInfo(context.info.encoding, memory.positions, memory.valid)
                    return run_branch("cross", lambda tap: attend(y, memory.x, of_memory, context.info, mask, tap))
                kv, queries = state.cross_kv, context.info.positions.shape[1]
                if queries != shape[1]:  # rows of one sentence, as several queries of its memory
                    y = y.reshape([-1, queries, shape[2]])  # [B · g, 1, C] -> [B, g, C]
                out = run_branch("cross", lambda tap: cross_attention(y, kv, context.info, context.mask, tap))
                return out if queries == shape[1] else out.reshape(shape)  # [B, g, C] -> [B · g, 1, C]

            sublayers.insert(1, cross_attend)
        x = self.placement(x, sublayers, info)
        return x, None if state is None else LayerState(self_kv, state.cross_kv, before)

    def start(self, memory: Memory, encoding: PositionalEncoding) -> LayerState:
        """The state before the first token: keys and values of the memory."""
        info = TokenInfo(encoding, memory.positions, memory.valid)
        if self.cross_attention is not None:
            return LayerState(None, self.cross_attention.project(memory.x, info))
        return LayerState(self.self_attention.project(memory.x, info))

    @property
    def over_memory(self) -> str:
        """The sublayer that attends to the memory, if there is one: `cross`, or the `self` that reads both."""
        return "cross" if self.cross_attention is not None else "self"

    def branches(self) -> dict[str, Attention | FeedForward]:
        """The sublayers in order, by name."""
        parts = {"self": self.self_attention, "cross": self.cross_attention, "feed_forward": self.feed_forward}
        return {name: part for name, part in parts.items() if part is not None}


def _beside(context: AttentionContext | None) -> tuple[AttentionContext, Memory]:
    """The context of what attends to the memory, and this.

    Raises:
        ValueError: there is none.
    """
    if context is None or context.memory is None:
        raise ValueError(
            "a decoder beside an encoder must have a memory to attend to, but it started without one; start it with "
            "the output of `Transformer.encode`"
        )
    return context, context.memory


class Stack(layers.Layer):
    """The layers between an embedding and the final norm, which only some placements have.

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
        self.layers = _LayerList(list(layers))
        self.encodings = _LayerList(list(encodings))
        self.cross_encodings = _LayerList(list(cross_encodings))
        self.final_norm = final_norm
        self.drop = Dropout(dropout)

    def enter(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Embedded tokens [B, T, C] with positions added and dropout applied, and the positions of this pass."""
        encoding = self.encodings[0]
        context, draw = randomness.current_context(), None
        if self.training and context is not None:
            key = (context.seed, "positions", self.stack_name, context.step, context.micro_batch)
            draw = partial(randomness.generator, *key)
        positions = encoding.remap(positions, draw)
        return self.drop(encoding.embed(x, positions)), positions

    def leave(self, x: Tensor, info: TokenInfo) -> Tensor:
        """The output [B, T, C] of what the top layer gives, after the final norm, if there is one."""
        x = self.layers[-1].placement.leave(x, info)
        return x if self.final_norm is None else self.final_norm(x, info.valid, info.positions)

    def contexts(
        self,
        encodings: _LayerList[PositionalEncoding],
        q_positions: Tensor,
        q_valid: Tensor,
        mask: Mask,
        memory: Memory | None = None,
    ) -> list[AttentionContext]:
        """The attention context of each layer; layers that share an encoding share one mask, computed once. `mask` has
        the encoding of the first. All share one `TokenInfo.shared`, empty as yet."""
        contexts: list[AttentionContext] = []
        shared: dict[str, Tensor] = {}
        for encoding in encodings:
            of_layer = mask.with_encoding(encoding) if contexts else mask
            contexts.append(AttentionContext(TokenInfo(encoding, q_positions, q_valid, shared), of_layer, memory))
        return contexts if len(contexts) == len(self.layers) else contexts * len(self.layers)


class Encoder(Stack):
    """x [B, S, C] → the encoder's output of that shape; every position attends to every real token."""

    def forward(self, x: Tensor, valid: Tensor, tap: Tap) -> tuple[Tensor, Tensor]:
        """Returns the output and the positions [1, S] of this pass."""
        positions = paddle.arange(x.shape[1], dtype="int64").unsqueeze(0)
        x, positions = self.enter(x, positions)
        tap.within("encoder").record("input", x)
        mask = Mask(positions, positions, valid, False, self.encodings[0])
        contexts = self.contexts(self.encodings, positions, valid, mask)
        x = self.layers[0].placement.enter(x, contexts[0].info)
        for i, (layer, context) in enumerate(zip(self.layers, contexts)):
            x, _ = layer(x, None, context, None, tap.within(f"encoder.{i}"))
        return self.leave(x, contexts[-1].info), positions


class Decoder(Stack):
    """Causal self-attention over the output so far, and cross-attention to the memory, if there is one. Training is one
    call with all T tokens and an empty state (invariant 2 of `paddle_tfm.protocols`)."""

    def start(self, memory: Memory | None, keep: bool = True) -> DecoderState:
        """The state before the first token: keys and values of the memory, projected once for each layer. Without
        `keep` a single pass follows, which projects them itself."""
        if not keep:
            return DecoderState(memory, (None,) * len(self.layers))
        if memory is None:
            return DecoderState(None, tuple(LayerState() for _ in self.layers))
        encodings = list(self.cross_encodings)
        encodings = encodings if len(encodings) == len(self.layers) else encodings * len(self.layers)
        states = (layer.start(memory, encoding) for layer, encoding in zip(self.layers, encodings))
        return DecoderState(memory, tuple(states))

    def forward(self, x: Tensor, state: DecoderState, valid: Tensor | None, tap: Tap) -> tuple[Tensor, DecoderState]:
        """x [B, T, C]: the next T embedded tokens, of which `valid` [B, T] are real (None: all) → (output [B, T, C],
        the new state)."""
        rows, tokens, _ = x.shape
        if state.length and None in state.layers:
            raise ValueError("a pass that keeps nothing cannot be continued; start with `keep`")
        if tokens > 1 and state.group > 1:
            state = state.select(paddle.arange(rows), True)
        length, memory = state.length + tokens, state.memory
        x, positions = self.enter(x, _positions(state.length, tokens))
        tap.within("decoder").record("input", x)
        all_positions = positions if state.positions is None else paddle.concat([state.positions, positions], 1)
        all_valid = _join_valid(state, valid, rows, tokens)
        newest = all_valid is None and tokens == 1  # it sees all tokens so far: nobody needs to compare positions
        k_valid = all_valid if all_valid is not None else partial(_all_real, rows, length)
        k_positions = all_positions
        if memory is not None and self.layers[0].self_attention.reads_memory:
            # The memory's keys come first. At −1 they are in the past of every token, whatever its position.
            of_memory = paddle.full([all_positions.shape[0], memory.x.shape[1]], -1, "int64")
            real = _all_real(rows, length) if all_valid is None else all_valid
            k_positions, k_valid = paddle.concat([of_memory, all_positions], 1), paddle.concat([memory.valid, real], 1)
            newest = False
        self_mask = Mask(positions, k_positions, k_valid, True, self.encodings[0], sees_all=newest)
        valid = _all_real(rows, tokens) if valid is None else valid
        self_contexts = self.contexts(self.encodings, positions, valid, self_mask)
        cross_contexts: Sequence[AttentionContext | None] = [None] * len(self.layers)
        memory_mask = state.memory_mask
        if memory is not None:
            queries, real = positions, valid
            if state.group > 1:
                queries, real = positions.expand([1, state.group]), _all_real(rows // state.group, state.group)
            if memory_mask is None:
                memory_mask = Mask(queries, *_seen(memory, state.group), False, self.cross_encodings[0])
            else:
                memory_mask = memory_mask.with_queries(queries)
            cross_contexts = self.contexts(self.cross_encodings, queries, real, memory_mask, memory)
        layers = []
        x = self.layers[0].placement.enter(x, self_contexts[0].info)
        for i, (layer, layer_state) in enumerate(zip(self.layers, state.layers)):
            x, layer_state = layer(x, layer_state, self_contexts[i], cross_contexts[i], tap.within(f"decoder.{i}"))
            layers.append(layer_state)
        state = DecoderState(
            memory, tuple(layers), length, all_positions, all_valid, memory_mask, state.group, state.head
        )
        return self.leave(x, self_contexts[-1].info), state


def _positions(start: int, number: int) -> Tensor:
    """start, start + 1, …: int64 [1, number]."""
    if number == 1:  # a step of decoding: a third of the time
        return paddle.full([1, 1], start, "int64")
    return paddle.arange(start, start + number, dtype="int64").unsqueeze(0)


def _seen(memory: Memory, group: int) -> tuple[Tensor, Tensor]:
    """Positions and validity of the memory, once for each `group` rows."""
    positions, valid = memory.positions, memory.valid
    if group == 1:
        return positions, valid
    return positions if positions.shape[0] == 1 else positions[::group], valid[::group]


def _all_real(rows: int, tokens: int) -> Tensor:
    return paddle.ones([rows, tokens], "bool")


def _join_valid(state: DecoderState, valid: Tensor | None, rows: int, tokens: int) -> Tensor | None:
    """The validity of the tokens so far and the next ones; None: all are real."""
    if state.valid is None and valid is None:
        return None
    if state.length == 0:
        return valid
    before = _all_real(rows, state.length) if state.valid is None else state.valid
    return paddle.concat([before, _all_real(rows, tokens) if valid is None else valid], 1)
