"""Scores in two groups with nothing between them, such as those of runs that learned and of runs that did not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

FEWEST = 6  # values: of fewer, a gap says nothing
GAP = 6.0  # standard deviations within the groups; six normal values have such a gap in 2% of draws, ten in 0.2%
SHARE = 1 / 6  # of all values, in the smaller group: fewer are outliers, for which the t test is merely cautious

Key = TypeVar("Key")


class Groups(NamedTuple):
    """`low` values up to `below` and `high` values from `above` on; `divided`: which variants have values in both."""

    low: int
    high: int
    below: float
    above: float
    divided: list


def two_groups(values: Mapping[Key, Sequence[float]]) -> Groups | None:
    """The groups on both sides of the widest gap between the values of all variants together, if each has two values
    and a sixth of all, and the gap is more than six times the standard deviation within groups,
    √(Σ (x − mean of its group)² / (n − 2)). None where every variant lies in one of them: variants may be far apart.

    For such values the t test does not hold: three alike pairs look certain, and of a few pairs three are often alike.
    """
    known = {key: np.array([value for value in some if np.isfinite(value)], float) for key, some in values.items()}
    ordered = np.sort(np.concatenate([*known.values(), []]))
    least = max(2, int(np.ceil(SHARE * len(ordered))))
    if len(ordered) < FEWEST:
        return None
    low = int(np.diff(ordered)[least - 1 : len(ordered) - least].argmax()) + least
    below, above = float(ordered[low - 1]), float(ordered[low])
    within = sum(float(((part - part.mean()) ** 2).sum()) for part in (ordered[:low], ordered[low:]))
    if above - below <= GAP * np.sqrt(within / (len(ordered) - 2)):
        return None
    divided = [key for key, some in known.items() if len(some) and some.min() <= below and some.max() >= above]
    return Groups(low, len(ordered) - low, below, above, divided) if divided else None
