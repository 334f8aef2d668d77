"""One look by itself: its p-value, as if there were no other, and what that must be below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scipy import stats

from paddle_tfm.comparison.statistics import signs
from paddle_tfm.comparison.statistics.decide import paired_differences
from paddle_tfm.comparison.statistics.looks import student
from paddle_tfm.comparison.statistics.outlook import Rule


class AtLook(NamedTuple):
    """A paired t test after `size` pairs: its two-sided p-value, and the `bound` below which the look decides."""

    size: int
    p: float
    bound: float


def at_look(pairs: Sequence[tuple[float, float]], rule: Rule, level: float) -> AtLook | None:
    """The last look that `pairs` (the variant's value and the baseline's) suffice for. The bound is that of `rule` at
    `level`, which is the level of the whole test of this variant, over all looks (`Verdict.level`).

    None before the first look, where all pairs are equal, and where a pair lacks a value: such a look is a test of
    signs.
    """
    differences = paired_differences(pairs, True)
    size = max(rule.upto(len(differences)), default=0)
    seen = differences[:size]
    if not size or not signs.complete(seen) or not seen.any():
        return None
    p, bound = (float(2 * stats.t.sf(abs(t), size - 1)) for t in (student(seen), rule.bound(size, level)))
    return AtLook(size, p, bound)
