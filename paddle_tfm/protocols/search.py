"""How tokens are chosen one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

from paddle_tfm.protocols.component import Component

if TYPE_CHECKING:
    from paddle import Tensor


class Hypothesis(NamedTuple):
    """A found output: ids without begin and end, and the sum of their log-probabilities with that of the end."""

    ids: list[int]
    score: float


class Constraints(NamedTuple):
    """What every output of a search keeps to. A search only declares them: the engine alters the log-probabilities that
    it is given, so that they hold for every search.

    min_length: no end before so many tokens; it goes before `Search.limit`. max_length: no token after so many; None:
    `Search.limit` alone decides. no_repeat_ngram: no run of so many tokens twice in an output (arXiv:1705.04304); 0: any.
    Where nothing else is possible, the end token is.
    """

    min_length: int = 0
    max_length: int | None = None
    no_repeat_ngram: int = 0


class Decoding:
    """What a search drives: rows of unfinished outputs, one step at a time. Implemented by the engine.

    At first there is a row for each sentence of the batch. `max_lengths` [B]: the longest output allowed, in tokens.
    `sentences` [B]: each one's number among all that the caller gave, which a random draw may depend on; on a place in
    the batch it must not.
    """

    bos: int
    eos: int
    max_lengths: list[int]
    sentences: list[int]

    def advance(self, tokens: Tensor) -> Tensor:
        """Feed the last tokens int64 [R] and get log-probabilities float32 [R, V'] of the next. One of MASKED_SCORE / 2 or less
        says that the token is impossible: it is never to be chosen."""
        raise NotImplementedError

    def select(self, rows: Tensor) -> None:
        """Go on with these rows only (int64 [R'], repeats allowed), in this order."""
        raise NotImplementedError


class Search(Component):
    """How tokens are chosen one after another."""

    kind: ClassVar[str] = "search"
    nbest: int = 1  # how many hypotheses of a sentence `run` gives at most

    def limit(self, source_length: int) -> int:
        """The longest output, in tokens, for a source of so many tokens."""
        return 2 * source_length + 20

    def constraints(self) -> Constraints:
        """What the outputs keep to; by default nothing."""
        return Constraints()

    def run(self, decoding: Decoding) -> list[list[Hypothesis]]:
        """Hypotheses of each sentence, best first, at least one. Sentences never influence each other."""
        raise NotImplementedError
