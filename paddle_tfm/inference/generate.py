"""Text that goes on: what a decoder-only model writes after a prompt, told token by token."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.data.codec import Codec
from paddle_tfm.data.vocabulary import BOS, UNKNOWN
from paddle_tfm.errors import UserError
from paddle_tfm.inference.translate import Translation
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import MASKED_SCORE, Decoding, Excerpt, Search
from paddle_tfm.search.constraints import Constrained
from paddle_tfm.search.decoding import ModelDecoding, possible

LOST = "\N{REPLACEMENT CHARACTER}"  # at the end of a text: a character of which not all bytes are there yet


class Continuation(ModelDecoding):
    """What follows `prompt` (ids) under a decoder-only model, in a window that moves over the text.

    The model sees the begin token and at most max_length − 1 tokens. When they are full, it goes on after the last half of
    them, as if a text began there: in training, blocks of a text begin like that.
    """

    def __init__(self, model: Transformer, prompt: list[int], limit: int, number: int):
        self.model, self.max_lengths, self.sentences = model, [limit], [number]
        self.history = np.array([prompt], np.int64).reshape(1, -1)  # [R, t]: all tokens but the begin token
        self.state = model.start(None)

    def advance(self, tokens: Tensor) -> Tensor:
        """Feed the last tokens int64 [R] → log-probabilities [R, V] of the next; what is unknown is never written."""
        if self.state.length:
            self.history = np.concatenate([self.history, tokens.numpy()[:, None]], 1)
        fed = tokens.unsqueeze(1)  # [R, 1]
        if self.state.length in (0, self.model.max_length):
            fed = self._again(tokens.shape[0])
        h, self.state = self.model.decode(fed, self.state)
        log_probs = possible(self.model.head.log_probs(h[:, -1:], None).squeeze(1))  # [R, 1, V] -> [R, V]
        log_probs[:, UNKNOWN] = MASKED_SCORE
        return log_probs

    def _again(self, rows: int) -> Tensor:
        """From an empty state: the begin token and the latest tokens, [R, 1 + t]."""
        self.state, room = self.model.start(None), self.model.max_length - 1
        seen = self.history.shape[1]
        kept = seen if seen <= room else max(1, room // 2)
        latest = self.history[:, seen - kept :]
        return paddle.to_tensor(np.concatenate([np.full((rows, 1), BOS, np.int64), latest], 1))

    def select(self, rows: Tensor) -> None:
        """Go on with these rows only."""
        self.state, self.history = self.state.select(rows), self.history[rows.numpy()]


class _Heard(Decoding):
    """`decoding`, of which `tell` hears every token that is fed, as long as there is but one output."""

    def __init__(self, decoding: Decoding, tell: Callable[[int], None]):
        self.decoding, self.tell = decoding, tell
        self.bos, self.eos = decoding.bos, decoding.eos
        self.max_lengths, self.sentences = decoding.max_lengths, decoding.sentences
        self.begun, self.single = False, True

    def advance(self, tokens: Tensor) -> Tensor:
        self.single = self.single and tokens.shape[0] == 1
        if self.begun and self.single:
            self.tell(int(tokens[0]))
        self.begun = True
        return self.decoding.advance(tokens)

    def select(self, rows: Tensor) -> None:
        self.single = False  # a search that goes back: what it feeds is not yet what it finds
        self.decoding.select(rows)


def generate(
    model: Transformer,
    codec: Codec,
    prompt: str,
    length: int,
    search: Search,
    number: int = 0,
    tell: Callable[[str], None] = lambda text: None,
) -> Translation:
    """At most `length` tokens that follow `prompt`, by a decoder-only model: with the search's constraints, but without its
    limit, which is one by the source.

    Args:
        number: of this text among several, on which draws of a search depend. tell: hears the text piece by piece as it
            comes, all of it in the end.
    Raises:
        UserError: the prompt has a piece that the model lacks.
    """
    encoded, constraints = codec.encode(Excerpt("", prompt)), search.constraints()
    if UNKNOWN in encoded.target:
        lacking = [piece for piece, i in zip(codec.target.tokenize(prompt), encoded.target) if i == UNKNOWN]
        raise UserError(f"prompt '{prompt}': the model has no piece {', '.join(map(repr, dict.fromkeys(lacking)))}")
    limit = length if constraints.max_length is None else min(length, constraints.max_length)
    found, written = [], _Written(codec, encoded.target, tell)
    training = model.training
    model.eval()
    with paddle.no_grad():
        decoding: Decoding = Continuation(model, encoded.target, limit, number)
        if constraints.min_length > 0 or constraints.no_repeat_ngram > 0:
            decoding = Constrained(decoding, constraints, [[]])
        found = search.run(_Heard(decoding, written.add))[0][0]
    if training:
        model.train()
    text = written.finish(found.ids)
    return Translation(text, tuple(codec.pieces(found.ids)), tuple(found.ids), found.score)


class _Written:
    """A text that grows by tokens after a prompt, told by what is new of it."""

    def __init__(self, codec: Codec, prompt: list[int], tell: Callable[[str], None]):
        self.codec, self.prompt, self.tell = codec, prompt, tell
        self.ids: list[int] = []
        self.before = self._text([])
        self.told = ""

    def _text(self, ids: list[int]) -> str:
        return self.codec.text(self.codec.pieces([*self.prompt, *ids]))

    def add(self, token: int) -> None:
        """One more token; a character of which some bytes are missing waits for them."""
        self.ids.append(token)
        text = self._text(self.ids).removeprefix(self.before)
        if text.startswith(self.told) and not text.endswith(LOST):
            self._tell(text)

    def finish(self, ids: list[int]) -> str:
        """The whole text after the prompt, of these tokens, of which what is new is told."""
        text = self._text(ids).removeprefix(self.before)
        if text.startswith(self.told):
            self._tell(text)
        return text

    def _tell(self, text: str) -> None:
        if new := text[len(self.told) :]:
            self.tell(new)
        self.told = text
