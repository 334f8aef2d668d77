"""Scores in two groups with nothing between them, such as those of runs that learned and of runs that did not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

FEWEST = 6  # values: of fewer, a gap says nothing
GAP, NARROWEST = 15.0, 3.0  # standard deviations: divided by the values of the smaller group, and at least
WIDEST = 3  # gaps that are tried
SAMPLE = 15  # values, of fewer of which the standard deviation is uncertain, so that the gap must be wider
APART = 0.05  # of the largest value: less between two groups is no run that failed

Key = TypeVar("Key")


class Groups(NamedTuple):
    """`low` values up to `below` and `high` values from `above` on; `divided`: which variants have values in both."""

    low: int
    high: int
    below: float
    above: float
    divided: list


def two_groups(values: Mapping[Key, Sequence[float]]) -> Groups | None:
    """The groups on both sides of a gap between the values of all variants together that divides those of some variant
    (variants may be far apart): the widest gap that is wider than 15 / m and 3 standard deviations within the groups of
    each variant, m being the values of the smaller group,

        √(Σ (x − mean of its variant in its group)² / (n − the number of these means)),

    and than `APART`. So a single run that failed is seen by a wide gap, and several where groups are blurred. Of draws
    of one normal distribution 1% look so, of a skewed one up to 4%.

    For such values the t test does not hold: three alike pairs look certain, and of a few pairs three are often alike.
    """
    known = {key: np.array([value for value in some if np.isfinite(value)], float) for key, some in values.items()}
    known = {key: some for key, some in known.items() if len(some)}
    ordered = np.sort(np.concatenate([*known.values(), []]))
    if (size := len(ordered)) < FEWEST:
        return None
    width = np.diff(ordered)
    for low in np.argsort(-width, kind="stable")[:WIDEST] + 1:
        below, above = float(ordered[low - 1]), float(ordered[low])
        divided = [key for key, some in known.items() if some.min() <= below and some.max() >= above]
        parts = [part for some in known.values() for part in (some[some <= below], some[some >= above]) if len(part)]
        within = np.sqrt(sum(float(((part - part.mean()) ** 2).sum()) for part in parts) / max(size - len(parts), 1))
        needed = max(GAP / min(low, size - low), NARROWEST) * max(1, SAMPLE / size) * within
        if divided and above - below > max(needed, APART * np.abs(ordered).max()):
            return Groups(int(low), int(size - low), below, above, divided)
    return None
