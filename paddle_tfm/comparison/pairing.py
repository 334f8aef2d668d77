"""What paired values of variants say to a question, and how variants are ranked."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from statistics import fmean
from typing import TypeVar

import numpy as np

from paddle_tfm import units
from paddle_tfm.comparison.question import Question
from paddle_tfm.comparison.runs import Pairs
from paddle_tfm.comparison.statistics import Verdict, decide, worst_value

Key = TypeVar("Key", bound=Hashable)


def verdicts(pairs: Mapping[Key, Pairs], unit: str, higher: bool, question: Question) -> dict[Key, Verdict]:
    """A verdict on each variant, or each on each test, that has a pair: its value and the baseline's, NaN where a run
    diverged."""
    lowest, highest = units.bounds(unit, higher)
    smallest = None if question.smallest_effect is None else units.stored(question.smallest_effect, unit)
    some = {variant: values for variant, values in pairs.items() if values}
    rules = {variant: question.rule(values.looks) for variant, values in some.items()}
    return decide(some, rules, higher, smallest, highest - lowest)


def standings(values: Mapping[str, Sequence[float | None]], unit: str, higher: bool) -> dict[str, float]:
    """The mean by which each variant is ranked. A run that diverged, None, counts as the worst that the metric can be,
    or, where it has no worst, as the worst here; NaN where no run of a variant has a value."""
    known = [value for column in values.values() for value in column if value is not None]
    worst = worst_value(np.array(known), higher, units.bounds(unit, higher)[0 if higher else 1])
    return {variant: _standing(column, worst) for variant, column in values.items()}


def _standing(values: Sequence[float | None], worst: float) -> float:
    if not [value for value in values if value is not None and not math.isnan(value)]:
        return math.nan
    counted = [worst if value is None else value for value in values]
    return fmean(value for value in counted if not math.isnan(value))
