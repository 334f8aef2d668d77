"""How tokens are chosen one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from paddle_tfm.protocols.component import Component

if TYPE_CHECKING:
    from paddle import Tensor


class Hypothesis(NamedTuple):
    """An output: ids without begin and end, and the sum of their log-probabilities with that of the end."""

    ids: list[int]
    score: float


class Constraints(NamedTuple):
    """What every output of a search must satisfy. A search only declares them: the engine alters the log-probabilities
    that `Decoding.advance` returns, so that they hold for every search.

    min_length: no end before so many tokens; it precedes `Search.limit`. max_length: no token after so many; None:
    `Search.limit` alone decides. no_repeat_ngram: no run of so many tokens twice in an output (arXiv:1705.04304); 0:
    any. unknown: whether an output may hold the unknown piece. Where nothing else is possible, the end token is.
    """

    min_length: int = 0
    max_length: int | None = None
    no_repeat_ngram: int = 0
    unknown: bool = True


class Decoding:
    """The model as a search sees it: rows of unfinished outputs, one step at a time; at first a row for each sentence.
    `max_lengths` [B]: the longest output allowed, in tokens. `sentences` [B]: each one's number among all of the call,
    which a random draw may be keyed by (not by the row). `wanted`: how many outputs of a sentence are read, so that a
    search may end once these are certain; None: all. `required` [B]: token sequences that outputs must hold, or None.
    """

    bos: int
    eos: int
    max_lengths: list[int]
    sentences: list[int]
    wanted: int | None = None
    required: Sequence[Sequence[Sequence[int]]] | None = None

    def advance(self, tokens: Tensor) -> Tensor:
        """Feed the last tokens int64 [R] and get log-probabilities float32 [R, V'] of the next. One of MASKED_SCORE / 2
        or less says that the token is impossible."""
        raise NotImplementedError

    def select(self, rows: Tensor) -> None:
        """Continue with these rows only (int64 [R'], repeats allowed), in this order."""
        raise NotImplementedError


class Search(Component):
    """How tokens are chosen one after another, from log p(token | source, tokens before).

    Invariances: a sentence's output depends on no other sentence of the batch, and not on its row.

    Example::

        import paddle
        from paddle_tfm.protocols import Hypothesis, Search
        class Argmax(Search):
            def run(self, decoding):
                outputs, ends = [Hypothesis([], 0.0) for _ in decoding.max_lengths], set()
                tokens = paddle.full([len(outputs)], decoding.bos, "int64")
                while len(ends) < len(outputs):
                    log_probs = decoding.advance(tokens)  # [B, V]
                    tokens = log_probs.argmax(-1)
                    for i in {*range(len(outputs))} - ends:
                        ids, score = outputs[i]
                        token = decoding.eos if len(ids) == decoding.max_lengths[i] else int(tokens[i])
                        ids = ids + [token] * (token != decoding.eos)
                        outputs[i] = Hypothesis(ids, score + float(log_probs[i, token]))
                        ends |= {i} if token == decoding.eos else set()
                return [[output] for output in outputs]
    """

    kind: ClassVar[str] = "search"
    nbest: int = 1  # how many hypotheses `run` returns for a sentence at most
    greedy_with: ClassVar[Mapping[str, object] | None] = None  # options with which it is greedy search; None: never
    places_required: ClassVar[bool] = False  # whether it reads `Decoding.required`

    def limit(self, source_length: int) -> int:
        """The longest output, in tokens, for a source of so many tokens."""
        return 2 * source_length + 20

    def constraints(self) -> Constraints:
        """What the outputs must satisfy; by default nothing."""
        return Constraints()

    def run(self, decoding: Decoding) -> list[list[Hypothesis]]:
        """Hypotheses of each sentence, best first, at least one; `decoding.wanted` of them are read."""
        raise NotImplementedError
