"""How a difference changes with size: the slope of paired differences against log compute."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from paddle_tfm.comparison.statistics.intervals import CONFIDENCE

FARTHEST = 4.0  # times the compute beyond what was tested, or below it


@dataclass(frozen=True)
class Slope:
    """The line d = `intercept` + `slope` · log10(compute) through paired differences d, with the 95% interval of the
    slope. `crossing` is the compute at which the line is 0; `place` says where that is: `inside` what was tested,
    `outside` of it but within 4 times, or `none`."""

    slope: float
    low: float
    high: float
    intercept: float
    crossing: float | None
    place: str
    tested: tuple[float, float]

    def at(self, compute: float) -> float:
        """The difference that the line gives at `compute`.

        Raises:
            ValueError: that is more than 4 times beyond what was tested.
        """
        low, high = self.tested
        if not low / FARTHEST <= compute <= high * FARTHEST:
            raise ValueError(
                f"{compute:.3g} is more than {FARTHEST:g} times beyond what was tested, {low:.3g} to {high:.3g}"
            )
        return self.intercept + self.slope * math.log10(compute)


def slope(rungs: Mapping[float, Sequence[float]]) -> Slope:
    """The line through the paired differences of each size, compute → a difference a seed.

    Least squares over all differences, each with the same weight; the interval of the slope is Student's t with N − 2
    degrees of freedom. Sizes differ in spread and the line may not be one: with three sizes or fewer nothing shows it.

    Raises:
        ValueError: fewer than two sizes or three differences, or compute that is not above 0.
    """
    compute = np.array([size for size, values in rungs.items() for _ in values], dtype=np.float64)
    differences = np.array([value for values in rungs.values() for value in values], dtype=np.float64)
    if len(set(compute)) < 2 or len(compute) < 3 or compute.min() <= 0:
        raise ValueError("a slope needs two sizes with compute above 0, and three differences")
    fit = stats.linregress(np.log10(compute), differences)
    rise, intercept = float(fit.slope), float(fit.intercept)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(compute) - 2)) * float(fit.stderr)
    tested = float(compute.min()), float(compute.max())
    crossing, place = _crossing(rise, intercept, tested)
    return Slope(rise, rise - half, rise + half, intercept, crossing, place, tested)


def _crossing(rise: float, intercept: float, tested: tuple[float, float]) -> tuple[float | None, str]:
    where = -intercept / rise if rise else math.inf  # log10
    low, high = math.log10(tested[0]), math.log10(tested[1])
    reach = math.log10(FARTHEST)
    if not low - reach <= where <= high + reach:
        return None, "none"
    return 10**where, "inside" if low <= where <= high else "outside"


@dataclass(frozen=True)
class HeldOut:
    """How well the differences at the largest size were foretold: by the line through the smaller ones, and by the
    largest of those alone. `*_order` is the share of pairs of variants (the baseline too) in the right order, `*_error`
    the mean distance from the actual difference."""

    line_order: float
    single_order: float
    line_error: float
    single_error: float

    @property
    def line_is_better(self) -> bool:
        """Whether the line beat ranking at a single size, which is hard to beat (DataDecide, arXiv:2504.11393)."""
        return (self.line_order, -self.line_error) > (self.single_order, -self.single_error)


def held_out(variants: Mapping[str, Mapping[float, Sequence[float]]]) -> HeldOut:
    """What smaller sizes would have said of the largest, for variants that were all trained at the same sizes.

    Raises:
        ValueError: sizes differ, are fewer than three, or the largest is more than 4 times the one before.
    """
    sizes = sorted(next(iter(variants.values())))
    if any(sorted(rungs) != sizes for rungs in variants.values()) or len(sizes) < 3:
        raise ValueError("holding out the largest size needs three sizes, the same for each variant")
    *smaller, top = sizes
    actual = np.array([0.0, *(np.mean(rungs[top]) for rungs in variants.values())])  # the baseline differs by 0
    single = np.array([0.0, *(np.mean(rungs[smaller[-1]]) for rungs in variants.values())])
    line = np.array([0.0, *(slope({x: rungs[x] for x in smaller}).at(top) for rungs in variants.values())])
    return HeldOut(
        _order(line, actual), _order(single, actual),
        float(np.abs(line - actual)[1:].mean()), float(np.abs(single - actual)[1:].mean()),
    )  # fmt: skip


def _order(foretold: np.ndarray, actual: np.ndarray) -> float:
    one, other = np.triu_indices(len(actual), 1)
    return float((np.sign(foretold[one] - foretold[other]) == np.sign(actual[one] - actual[other])).mean())
