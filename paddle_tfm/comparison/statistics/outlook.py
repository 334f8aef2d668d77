"""What a number of seeds can see, and how many more would likely settle a comparison that is open."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats

from paddle_tfm.comparison.statistics.looks import Looks

POWER = 0.8
DRAWS = 400  # of pairs to come, where a run may have no value
MOST = 100  # pairs: beyond, a few seeds' spread says too little


@dataclass(frozen=True)
class MoreSeeds:
    """`number` more seeds, or at least so many where `more_than`: the count ends at `MOST` pairs."""

    number: int
    more_than: bool = False


def more_seeds(differences: np.ndarray, rule: Looks, level: float, smallest: float | None = None) -> MoreSeeds | None:
    """The fewest further pairs after which one look settles `differences` [pairs] with a chance of 80%, if their mean
    and standard deviation are the true ones: by a difference (the power of the t test, from the noncentral t), or by an
    interval within ±`smallest`. Where a pair lacks a value looks are tests of signs: pairs to come are then drawn from
    those that there are, and a variant that diverged with every seed is taken to diverge with the next. None of fewer
    than two pairs, and there after the last look. The spread of three seeds is known within a factor of three or so,
    and so is this number.
    """
    if len(differences) < 2:
        return None
    if not np.isfinite(differences).all():
        return _by_signs(differences, rule, level)
    mean, deviation, pairs = float(differences.mean()), float(differences.std(ddof=1)), len(differences)
    bounds = {size: bound for size in range(pairs + 1, MOST + 1) if math.isfinite(bound := _bound(rule, size, level))}
    sizes, at_each = np.array([*bounds], float), np.array([*bounds.values()], float)
    errors = deviation / np.sqrt(sizes)
    chances = np.maximum(_differs(mean, errors, at_each, sizes), _within(mean, errors, at_each, smallest))
    enough = np.flatnonzero(chances >= POWER)
    if len(enough):
        return MoreSeeds(int(sizes[enough[0]]) - pairs)
    return MoreSeeds(max(MOST - pairs, 0), more_than=True)


def smallest_seen(pairs: int, rule: Looks, level: float) -> float:
    """The least mean of paired differences, in units of their standard deviation, that a look after so many `pairs`
    finds with a chance of 80%: δ with P(|T| ≥ bound) = 80%, T noncentral t of `pairs` − 1 degrees of freedom and
    noncentrality δ √pairs. Infinite where a look there finds nothing."""
    bound = _bound(rule, pairs, level) if pairs > 1 else math.inf
    if math.isinf(bound):
        return math.inf

    def missing(shift: float) -> float:
        return float(stats.nct.sf(bound, pairs - 1, shift)) - POWER

    most = bound
    while missing(most) < 0:
        most *= 2
    return float(optimize.brentq(missing, 0.0, most)) / math.sqrt(pairs)


def _by_signs(differences: np.ndarray, rule: Looks, level: float) -> MoreSeeds | None:
    pairs = len(differences)
    looks = [size for size in range(pairs + 1, MOST + 1) if size in rule.upto(size)]
    if not looks:
        return None
    to_come = np.random.default_rng(0).choice(differences, (DRAWS, MOST - pairs))
    seen = np.concatenate([np.broadcast_to(differences, (DRAWS, pairs)), to_come], -1)
    for size in looks:
        if (rule.p_values(seen[:, :size])[:, -1] <= level).mean() >= POWER:
            return MoreSeeds(size - pairs)
    return MoreSeeds(MOST - pairs, more_than=True)


def _bound(rule: Looks, size: int, level: float) -> float:
    """The bound of a look after `size` pairs; infinite where there is none. Beyond the last look: as at the last
    one."""
    if size in rule.upto(size):
        return rule.bound(size, level)
    looks = rule.upto(MOST)
    if size < looks[-1]:
        return math.inf
    nominal = special.stdtr(looks[-1] - 1, -rule.bound(looks[-1], level))  # of one side
    return float(-special.stdtrit(size - 1, nominal))


def _differs(mean: float, errors: np.ndarray, bounds: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The chance that a look at each size finds a difference."""
    if not errors.any():
        return np.full(len(sizes), float(mean != 0))
    return stats.nct.sf(bounds, sizes - 1, abs(mean) / errors)


def _within(mean: float, errors: np.ndarray, bounds: np.ndarray, smallest: float | None) -> np.ndarray:
    """The chance that the interval at each size lies within ±`smallest`."""
    if smallest is None:
        return np.zeros(len(bounds))
    room = smallest - bounds * errors
    if not errors.any():
        return ((room > 0) & (abs(mean) <= smallest)).astype(float)
    inside = special.ndtr((room - mean) / errors) - special.ndtr((-room - mean) / errors)
    return np.where(room > 0, inside, 0.0)
