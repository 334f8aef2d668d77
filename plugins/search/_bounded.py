"""What the searches share: how long an output may be, and its constraints."""

from __future__ import annotations

from paddle_tfm.language import _
from paddle_tfm.protocols import Constraints, Search
from paddle_tfm.validators import between, not_negative


class Bounded(Search):
    """Outputs of at most max_ratio · source length + max_extra tokens, and of at most `max_length`.

    No output ends before `min_length` tokens, even where the former bound is lower, and none holds a run of
    `no_repeat_ngram` tokens twice (arXiv:1705.04304; 0: any); without `unknown` none holds the unknown piece.
    """

    def __init__(
        self,
        max_ratio: float = 2.0,
        max_extra: int = 20,
        min_length: int = 0,
        max_length: int | None = None,
        no_repeat_ngram: int = 0,
        unknown: bool = True,
    ):
        between("[0, inf)", max_ratio=max_ratio)
        not_negative(max_extra=max_extra, min_length=min_length, no_repeat_ngram=no_repeat_ngram)
        if max_ratio == max_extra == 0:
            raise ValueError(_("`max_ratio` and `max_extra` must not both be 0: no output could have a token"))
        if max_length is not None and max_length < max(1, min_length):
            text = _("`max_length` must be at least 1 and `min_length`={min_length}, but is {max_length}")
            raise ValueError(text.format(min_length=min_length, max_length=max_length))
        self.max_ratio, self.max_extra = max_ratio, max_extra
        self.constrained = Constraints(min_length, max_length, no_repeat_ngram, unknown)

    def limit(self, source_length: int) -> int:
        return max(1, int(self.max_ratio * source_length + self.max_extra))

    def constraints(self) -> Constraints:
        return self.constrained
