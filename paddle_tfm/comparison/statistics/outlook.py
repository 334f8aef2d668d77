"""How many more seeds would likely settle a comparison that is open."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import stats

POWER = 0.8
MOST = 100  # pairs: beyond, a few seeds' spread says too little


class Rule(Protocol):
    """When to look at paired differences, and what a look says: `Looks`, `OpenEnded`."""

    def upto(self, pairs: int) -> tuple[int, ...]: ...
    def bound(self, size: int, level: float) -> float: ...
    def p_values(self, differences: np.ndarray) -> np.ndarray: ...
    def interval(self, differences: np.ndarray, level: float) -> tuple[float, float]: ...


@dataclass(frozen=True)
class MoreSeeds:
    """`number` more seeds, or at least so many where `more_than`: the count ends at `MOST` pairs."""

    number: int
    more_than: bool = False


def more_seeds(differences: np.ndarray, rule: Rule, level: float, smallest: float | None = None) -> MoreSeeds | None:
    """The fewest further pairs after which one look settles `differences` [pairs] with a chance of 80%, if their mean
    and standard deviation are the true ones: by a difference (the power of the t test, from the noncentral t), or by an
    interval within ±`smallest`. None where fewer than two have a value. The spread of three seeds is known within a
    factor of three or so, and so is this number.
    """
    known = differences[np.isfinite(differences)]
    if len(known) < 2:
        return None
    mean, deviation, pairs = float(known.mean()), float(known.std(ddof=1)), len(differences)
    for size in range(pairs + 1, MOST + 1):
        bound = _bound(rule, size, level)
        if bound is None or math.isinf(bound):
            continue
        error = deviation / math.sqrt(size)
        if max(_differs(mean, error, bound, size), _within(mean, error, bound, smallest)) >= POWER:
            return MoreSeeds(size - pairs)
    return MoreSeeds(max(MOST - pairs, 0), more_than=True)


def _bound(rule: Rule, size: int, level: float) -> float | None:
    """The bound of a look after `size` pairs; None where there is none. Beyond the last look: as at the last one."""
    if size in rule.upto(size):
        return rule.bound(size, level)
    looks = rule.upto(MOST)
    if size < looks[-1]:
        return None
    nominal = 2 * stats.t.sf(rule.bound(looks[-1], level), looks[-1] - 1)
    return float(stats.t.isf(nominal / 2, size - 1))


def _differs(mean: float, error: float, bound: float, size: int) -> float:
    if error == 0:
        return float(mean != 0)
    return float(stats.nct.sf(bound, size - 1, abs(mean) / error))


def _within(mean: float, error: float, bound: float, smallest: float | None) -> float:
    if smallest is None:
        return 0.0
    room = smallest - bound * error
    if room <= 0 or error == 0:
        return float(room > 0 and abs(mean) <= smallest)
    return float(stats.norm.cdf((room - mean) / error) - stats.norm.cdf((-room - mean) / error))
