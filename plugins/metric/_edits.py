"""What the error rates share: how far a sequence is from another."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from paddle_tfm import memory
from paddle_tfm.protocols import Metric, Prediction

Items = Sequence[Hashable]


class ErrorRate(Metric):
    """Σ edits / Σ items of the references: insertions, deletions and substitutions that mend the outputs. It may exceed
    1. A subclass says what the items of a prediction are."""

    higher_is_better: ClassVar[bool] = False
    unit: ClassVar[str] = "%"
    item: ClassVar[str]  # what is counted: piece, word, …; for errors

    def items(self, prediction: Prediction) -> tuple[Items, Items]:
        """The items of the hypothesis, and those of the reference."""
        raise NotImplementedError

    def statistics(self, predictions: Sequence[Prediction]) -> np.ndarray:
        pairs = [self.items(prediction) for prediction in predictions]
        return np.array([(edit_distance(ours, theirs), len(theirs)) for ours, theirs in pairs], dtype=np.float64)

    def value(self, total: np.ndarray) -> float:
        edits, length = total.tolist()
        if not length:
            raise ValueError(f"`predictions` must hold at least one {self.item} of a reference")
        return edits / length


def edit_distance(a: Items, b: Items) -> int:
    """The fewest insertions, deletions and substitutions that make `a` into `b` (Levenshtein).

    Bit i of `up` (`down`) says that the distance of a[:i+1] to the read part of `b` is one more (less) than that of
    a[:i]: a whole column of the table in two integers (Myers 1999, as simplified by Hyyrö 2003).
    """
    a, b = sorted((a, b), key=len)  # it is symmetric, and the table takes as many bits as `a` has items
    if not a:
        return len(b)
    memory.require(len(set(a)) * len(a) // 8, f"the edit distance of {len(a):,} and {len(b):,} items")
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
