"""Token sequences that an output of a beam must hold: which are missing, and which continuations a beam keeps.

Source: dynamic beam allocation, Post and Vilar 2018, arXiv:1804.06609.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.protocols import MASKED_SCORE

Unmet = tuple[tuple[tuple[int, ...], int], ...]  # (a sequence, with how many of its first tokens the output ends)
Candidate = tuple[float, int, int]  # log-probability, output, token


class Partial(NamedTuple):
    """An unfinished output: its tokens, their log-probability, and the required sequences that it does not hold."""

    ids: list[int]
    score: float
    unmet: Unmet

    def extended(self, token: int, score: float) -> Partial:
        """With one more token; `score`: the log-probability then."""
        return Partial([*self.ids, token], score, after(self.unmet, token))


def unmet(required: Sequence[Sequence[int]]) -> Unmet:
    """What an output without a token does not hold."""
    return tuple((tuple(ids), 0) for ids in required)


def after(before: Unmet, token: int) -> Unmet:
    """What is unmet after one more token. A sequence that is broken off counts from its longest beginning with which
    the output still ends."""
    still = []
    for ids, matched in before:
        end = (*ids[:matched], token)
        matched = next(n for n in range(len(end), -1, -1) if end[len(end) - n :] == ids[:n])
        if matched < len(ids):
            still.append((ids, matched))
    return tuple(still)


def missing(of: Unmet) -> int:
    """How many tokens complete all sequences, one after another; each of them leaves one less."""
    return sum(len(ids) for ids, _matched in of) - max((matched for _ids, matched in of), default=0)


def allocated(ranked: Sequence[Candidate], outputs: Sequence[Partial], steps: np.ndarray, eos: int, room: int) -> list:
    """The continuations of a sentence's outputs in the order in which a beam takes them: in turn one from each bank, a
    bank being those that lack as many tokens, the best of each first, and the bank that lacks fewest before others. So
    banks share the beam, and who has no candidate leaves its share to the others.

    Args:
        ranked: the best continuations of all outputs. steps: log-probabilities [K, V] of the next token, of which each
            output's best is a candidate too, and those that continue or begin a required sequence.
        room: how many tokens more an output may get after the next one: what lacks more is given up, and the end comes
            only where nothing is missing.
    Raises:
        UserError: nothing is left, as a constraint of the search forbids a required token.
    """
    scores = {(i, token): score for score, i, token in ranked}
    for i, output in enumerate(outputs):
        words = np.delete(steps[i], eos).argmax()  # the best but the end
        for token in (words + (words >= eos), *(ids[matched] for ids, matched in output.unmet)):
            if steps[i, token] > MASKED_SCORE / 2:
                scores.setdefault((i, int(token)), output.score + float(steps[i, token]))
    banks = defaultdict(list)
    for (i, token), score in scores.items():
        before = outputs[i].unmet
        lacking = missing(before if token == eos else after(before, token))
        if lacking <= (0 if token == eos else room):
            banks[lacking].append((score, i, token))
    if not banks:
        raise UserError(_("the search's constraints (`no_repeat_ngram`) forbid words that are required"))
    turns = zip_longest(*(sorted(banks[lacking], key=lambda each: -each[0]) for lacking in sorted(banks)))
    return [candidate for turn in turns for candidate in turn if candidate is not None]
