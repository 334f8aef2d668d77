"""Continuing a text: what a decoder-only model writes after a prompt, streamed token by token."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.data.codec import Codec
from paddle_tfm.data.vocabulary import BOS, UNKNOWN
from paddle_tfm.errors import UserError
from paddle_tfm.inference.translate import Translation
from paddle_tfm.language import _
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import MASKED_SCORE, Decoding, Excerpt, Hypothesis, Search
from paddle_tfm.search.constraints import Constrained, alter_steps
from paddle_tfm.search.decoding import ModelDecoding

OnToken = Callable[[int], None]
INCOMPLETE_CHARACTER = "\N{REPLACEMENT CHARACTER}"  # at the end of a text: some bytes of its last character are missing


def seen_tokens(length: int, max_length: int) -> int:
    """How many of the latest tokens of a text, the begin token not counted, a model sees that is asked for the next."""
    return length if length < max_length else max(1, (max_length - 1) // 2)


class Continuation(ModelDecoding):
    """What follows `prompt` (ids) under a decoder-only model, in a window that moves over the text.

    The model sees the begin token and at most max_length − 1 tokens. When they are full, decoding continues from the
    last half of them, as if a text began there: in training, blocks of a text begin like that.
    """

    def __init__(self, model: Transformer, prompt: list[int], max_length: int, number: int):
        super().__init__(model, None, [max_length], [number])
        self.history = np.array([prompt], np.int64).reshape(1, -1)  # [R, t]: all tokens but the begin token

    def advance(self, tokens: Tensor) -> Tensor:
        """Feed the last tokens int64 [R] → log-probabilities [R, V] of the next; unknown is impossible too."""
        if self.state.length:
            self.history = np.concatenate([self.history, tokens.numpy()[:, None]], 1)
        inputs = tokens.unsqueeze(1)  # [R] -> [R, 1]
        if self.state.length in (0, self.model.max_length):
            self.state, inputs = self.model.start(None), self._window(tokens.shape[0])
        log_probs = self.step(inputs)
        log_probs[:, UNKNOWN] = MASKED_SCORE
        return log_probs

    def _window(self, rows: int) -> Tensor:
        """The begin token and the latest tokens, [R, 1 + t]."""
        length = self.history.shape[1]
        latest = self.history[:, length - seen_tokens(length, self.model.max_length) :]
        return paddle.to_tensor(np.concatenate([np.full((rows, 1), BOS, np.int64), latest], 1))

    def select(self, rows: Tensor) -> None:
        """Keep these rows only."""
        super().select(rows)
        self.history = self.history[rows.numpy()]


class StreamingDecoding(Decoding):
    """`decoding`, which reports each token of the output to `on_token`, as long as there is only one output.

    A search that selects rows (a beam) may still take back what it feeds: from then on nothing is reported.
    """

    def __init__(self, decoding: Decoding, on_token: Callable[[int], None]):
        self.decoding, self.on_token = decoding, on_token
        self.bos, self.eos = decoding.bos, decoding.eos
        self.max_lengths, self.sentences = decoding.max_lengths, decoding.sentences
        self.first, self.single = True, True

    def advance(self, tokens: Tensor) -> Tensor:
        """Feed the last tokens int64 [R] → log-probabilities [R, V] of the next."""
        self.single = self.single and tokens.shape[0] == 1
        if self.single and not self.first:  # the first is the begin token
            self.on_token(int(tokens[0]))
        self.first = False
        return self.decoding.advance(tokens)

    def select(self, rows: Tensor) -> None:
        """Keep these rows only."""
        self.single = False
        self.decoding.select(rows)


def generate(
    model: Transformer,
    codec: Codec,
    prompt: str,
    length: int,
    search: Search,
    number: int = 0,
    on_text: Callable[[str], None] = lambda text: None,
    decode: Callable[..., Hypothesis] | None = None,
) -> Translation:
    """At most `length` tokens that follow `prompt`, by a decoder-only model. The search's constraints hold, but not its
    `limit`, which depends on a source.

    Args:
        number: of this text among several, on which draws of a search depend. on_text: called with each new part of the
            text as it comes, in the end with all of it. decode: what `continue_ids` does for this model, done by
            another engine (`paddle_tfm.export.ctranslate2.generator`).
    Raises:
        UserError: the prompt has a piece that the model lacks.
    """
    encoded, constraints = codec.encode(Excerpt("", prompt)), search.constraints()
    if UNKNOWN in encoded.target:
        lacking = [piece for piece, i in zip(codec.target.tokenize(prompt), encoded.target) if i == UNKNOWN]
        text = _("prompt '{prompt}': the model has no piece {pieces}")
        raise UserError(text.format(prompt=prompt, pieces=", ".join(map(repr, dict.fromkeys(lacking)))))
    max_length = length if constraints.max_length is None else min(length, constraints.max_length)
    stream = _TextStream(codec, encoded.target, on_text)
    decode = functools.partial(continue_ids, model) if decode is None else decode
    best = decode(encoded.target, max_length, search, number, stream.add)
    return Translation(stream.finish(best.ids), tuple(codec.pieces(best.ids)), tuple(best.ids), best.score)


def ignore(token: int) -> None:
    """An `on_token` that does nothing."""


def continue_ids(
    model: Transformer,
    prompt: Sequence[int],
    max_length: int,
    search: Search,
    number: int = 0,
    on_token: OnToken = ignore,
) -> Hypothesis:
    """The best output of at most `max_length` tokens that follow `prompt`, by a decoder-only model. `on_token` is
    called with each as it comes, as long as there is only one output."""
    constraints = search.constraints()
    with model.evaluated(), model.computing("search"):
        decoding: Decoding = Continuation(model, list(prompt), max_length, number)
        if alter_steps(constraints):
            decoding = Constrained(decoding, constraints, [[]])
        stream = StreamingDecoding(decoding, on_token)
        stream.wanted = 1
        return search.run(stream)[0][0]


class _TextStream:
    """A text that grows by tokens after a prompt; each new part of it goes to `on_text`."""

    def __init__(self, codec: Codec, prompt: list[int], on_text: Callable[[str], None]):
        self.codec, self.prompt, self.on_text = codec, prompt, on_text
        self.ids: list[int] = []
        self.prompt_text = self._decode([])
        self.text = ""  # all that `on_text` was called with

    def _decode(self, ids: list[int]) -> str:
        return self.codec.text(self.codec.pieces([*self.prompt, *ids]))

    def add(self, token: int) -> None:
        """One more token; a character of which some bytes are missing waits for them."""
        self.ids.append(token)
        text = self._decode(self.ids).removeprefix(self.prompt_text)
        if not text.endswith(INCOMPLETE_CHARACTER):
            self._report(text)

    def finish(self, ids: list[int]) -> str:
        """The whole text of these tokens; what is new of it is reported."""
        text = self._decode(ids).removeprefix(self.prompt_text)
        self._report(text)
        return text

    def _report(self, text: str) -> None:
        if text.startswith(self.text):  # else a later piece changed what the earlier ones spell
            if part := text[len(self.text) :]:
                self.on_text(part)
            self.text = text
