"""Looking several times while seeds are added, at looks that are chosen before the first: bounds that are valid then.

Whoever adds seeds until p < 5% finds a difference that is not there in 14–18% of comparisons. Here 5% are shared out
among the looks: up to a look after n of N pairs, 5% · (n / N)^1.5 are spent (a spending function of Kim and DeMets
1987). The bounds follow from the exact distribution of t over the looks (`recursion`); for looks after 3, 5, 8 and 12
pairs they are p < .0063, .0080, .0162 and .0305.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy import interpolate, optimize, special, stats

from paddle_tfm.comparison.statistics import recursion, signs
from paddle_tfm.comparison.statistics.intervals import SIGNIFICANCE, common

POWER = 1.5
FIRST_SHARE = 0.8  # of the level, for the first look at listed seeds
GRID = np.geomspace(1e-4, 1, 17)


def student(differences: np.ndarray) -> np.ndarray:
    """t = √n · mean / s of `differences` [..., n]; ±inf where all are the same, NaN where all are 0."""
    mean, deviation = differences.mean(-1), differences.std(-1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return math.sqrt(differences.shape[-1]) * mean / deviation


class Looks:
    """Paired t tests after `sizes` pairs, which are valid together.

    A look k has the nominal bound q_k at the level of 5%, and at another level α the bound u q_k with the u(α) that
    makes the probability of a crossing α. The bounds of a smaller level lie inside those of a larger one, so that
    `p_values`, the smallest level at which a look so far has crossed, is a p-value however many looks were taken.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(int(size) for size in sizes)

    def upto(self, pairs: int) -> tuple[int, ...]:
        """The looks that `pairs` pairs suffice for."""
        return tuple(size for size in self.sizes if size <= pairs)

    @property
    def nominal(self) -> tuple[float, ...]:
        """The p-value below which each look crosses, at the level of 5%."""
        return _nominal(self.sizes)

    def share(self, size: int) -> float:
        """The share of the level that the look after `size` pairs spends; they sum to 1."""
        before = max((earlier for earlier in self.sizes if earlier < size), default=0)
        return (size / self.sizes[-1]) ** POWER - (before / self.sizes[-1]) ** POWER

    def bound(self, size: int, level: float) -> float:
        """The |t| from which on the look after `size` pairs crosses."""
        nominal = _scale(self.sizes, level) * self.nominal[self.sizes.index(size)]
        return float(stats.t.isf(min(nominal, 1) / 2, size - 1))

    def level(self, size: int, p: np.ndarray) -> np.ndarray:
        """The smallest level at which the look after `size` pairs crosses with these p-values of its t test alone."""
        return _level(self.sizes, p / self.nominal[self.sizes.index(size)])

    def p_values(self, differences: np.ndarray) -> np.ndarray:
        """The p-values [..., looks] at each look that `differences` [..., pairs] suffice for, each the smallest so far.

        Where a pair lacks a value, a look is a sign test at its share of the level: with the t tests before that pair
        they still spend no more than the level.
        """
        columns = []
        for size in self.upto(differences.shape[-1]):
            some = differences[..., :size]
            whole = signs.complete(some)
            t = student(np.where(whole[..., None], some, 0.0))
            p = 2 * stats.t.sf(np.where(np.isnan(t), 0.0, np.abs(t)), size - 1)
            by_sign = signs.sign_p(*signs.won_and_lost(some)) / self.share(size)
            columns.append(np.where(whole, self.level(size, p), np.minimum(by_sign, 1)))
        return np.minimum.accumulate(np.stack(columns, -1), -1) if columns else np.ones((*differences.shape[:-1], 0))

    def interval(self, differences: np.ndarray, level: float) -> tuple[float, float]:
        """What no look so far excludes at `level`: the repeated confidence intervals mean ± bound · s / √n of the looks
        (Jennison and Turnbull 1989), cut with each other. It excludes 0 where the p-value is at most `level`."""
        low, high = -math.inf, math.inf
        for size in self.upto(len(differences)):
            some = differences[:size]
            if signs.complete(some):
                half = self.bound(size, level) * float(some.std(ddof=1)) / math.sqrt(size)
                ends = float(some.mean()) - half, float(some.mean()) + half
            else:
                ends = signs.sign_interval(some, level * self.share(size))
            low, high = common((low, high), ends)
        return low, high


class Listed(Looks):
    """Paired t tests of all pairs that there are, from two on, after looks at the first `sizes` of them: valid together
    however many pairs are added and looked at later.

    The first look spends 80% of the level, further ones 5%, 2.5%, 1.25% … The sum, 90%, bounds the probability of a
    wrong one (Bonferroni) where the differences seen so far do not decide how many are added. Where they do, as with
    `more_seeds`, a further look spends up to twice its share: for that are the other 10%.
    """

    def __init__(self, sizes: Sequence[int] = ()) -> None:
        self.sizes = tuple(size for size in sizes if size > 1)

    def upto(self, pairs: int) -> tuple[int, ...]:
        return (*(size for size in self.sizes if size < pairs), *([pairs] if pairs > 1 else []))

    def share(self, size: int) -> float:
        before = sum(earlier < size for earlier in self.sizes)
        return (1 - FIRST_SHARE) / 2 ** (before + 1) if before else FIRST_SHARE

    def bound(self, size: int, level: float) -> float:
        return float(-special.stdtrit(size - 1, level * self.share(size) / 2))  # stats.t.isf in a hundredth of the time

    def level(self, size: int, p: np.ndarray) -> np.ndarray:
        return np.minimum(p / self.share(size), 1)


@lru_cache(maxsize=256)
def _nominal(sizes: tuple[int, ...]) -> tuple[float, ...]:
    return recursion.spending(sizes, [SIGNIFICANCE * (size / sizes[-1]) ** POWER for size in sizes])


@lru_cache(maxsize=256)
def _curve(sizes: tuple[int, ...]) -> interpolate.PchipInterpolator:
    """log level as a function of log u, from 1e-4 of the u at which a bound is p < 1."""
    nominal = np.array(_nominal(sizes))
    scales = GRID / nominal.max()
    levels = [recursion.crossing(sizes, scale * nominal) for scale in scales[:-1]]
    return interpolate.PchipInterpolator(np.log(scales), np.log([*levels, 1.0]))


def _level(sizes: tuple[int, ...], scale: np.ndarray) -> np.ndarray:
    """The probability under no difference that a p-value falls below `scale` times its nominal bound at some look."""
    curve = _curve(sizes)
    least, most = curve.x[0], curve.x[-1]
    with np.errstate(divide="ignore"):
        log = np.log(scale)
    return np.exp(curve(np.clip(log, least, most)) + np.minimum(log - least, 0))  # below the curve they go along


@lru_cache(maxsize=1024)
def _scale(sizes: tuple[int, ...], level: float) -> float:
    curve = _curve(sizes)
    if level <= math.exp(curve(curve.x[0])):
        return level / math.exp(curve(curve.x[0])) * math.exp(curve.x[0])
    return math.exp(optimize.brentq(lambda log: float(curve(log)) - math.log(level), curve.x[0], curve.x[-1]))
