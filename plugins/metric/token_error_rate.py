"""Edits from the output to the reference."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from paddle_tfm.protocols import Likelihood, Metric, Prediction


class TokenErrorRate(Metric):
    """Insertions, deletions and substitutions of pieces that mend the outputs, per piece of the references.

    The word error rate where pieces are words, the phoneme error rate where they are phonemes. It may exceed 1.
    """

    higher_is_better: ClassVar[bool] = False
    percent: ClassVar[bool] = True

    def compute(self, predictions: Sequence[Prediction], likelihood: Likelihood) -> float:
        length = sum(len(prediction.reference_pieces) for prediction in predictions)
        if not length:
            raise ValueError("`predictions` must hold at least one piece of a reference")
        edits = sum(edit_distance(each.hypothesis_pieces, each.reference_pieces) for each in predictions)
        return edits / length


def edit_distance(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """The fewest insertions, deletions and substitutions that make `a` into `b` (Levenshtein).

    Bit i of `up` (`down`) says that the distance of a[:i+1] to the read part of `b` is one more (less) than that of
    a[:i]: a whole column of the table in two integers (Myers 1999, as simplified by Hyyrö 2003).
    """
    if not a:
        return len(b)
    where: dict[Hashable, int] = {}
    for i, item in enumerate(a):
        where[item] = where.get(item, 0) | 1 << i
    full, last = (1 << len(a)) - 1, 1 << (len(a) - 1)
    up, down, distance = full, 0, len(a)
    for item in b:
        match = where.get(item, 0)
        diagonal = (((match & up) + up) ^ up) | match | down
        right_up = down | (full & ~(diagonal | up))
        right_down = up & diagonal
        distance += bool(right_up & last) - bool(right_down & last)
        right_up = right_up << 1 | 1
        right_down <<= 1
        up = full & (right_down | ~(diagonal | right_up))
        down = full & right_up & diagonal
    return distance
