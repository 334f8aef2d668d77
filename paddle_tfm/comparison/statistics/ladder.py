"""How a difference changes with size: the slope of paired differences against log compute."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from paddle_tfm.comparison.statistics.intervals import SIGNIFICANCE

FARTHEST = 4.0  # times the compute beyond what was tested, or below it


@dataclass(frozen=True)
class Slope:
    """The line d = `intercept` + `slope` · log2(compute) through paired differences d: `slope` is what a doubling of
    compute adds, with its interval from `low` to `high` (`slope`).

    `crossing` is the compute at which the line is 0; `place` says where that is: `inside` what was tested, `outside` of
    it but within 4 times, or `none`. `crossing_interval` (Fieller 1954) is None where the slope may be 0: then the
    differences do not say that there is a crossing.
    `misfit` is the p-value of the test that the differences lie on a line (lack of fit against the scatter within each
    size); None with two sizes, or where nothing scatters.
    """

    slope: float
    low: float
    high: float
    intercept: float
    crossing: float | None
    crossing_interval: tuple[float, float] | None
    place: str
    tested: tuple[float, float]
    degrees_of_freedom: int
    misfit: float | None
    _fit: _Fit

    def at(self, compute: float) -> float:
        """The difference that the line has at `compute`."""
        return self.intercept + self.slope * math.log2(compute)

    def band(self, compute: float) -> tuple[float, float]:
        """The interval of the line's difference at `compute`."""
        mean, half = self.at(compute), self._fit.half_width(math.log2(compute))
        return mean - half, mean + half


@dataclass(frozen=True)
class _Fit:
    """What intervals of a line need: of n values the centre of x, Σ (x − x̄)², and the residual deviation times t."""

    number: int
    centre: float
    squares: float
    scatter: float

    def half_width(self, x: float) -> float:
        return self.scatter * math.sqrt(1 / self.number + (x - self.centre) ** 2 / self.squares)

    def crossing(self, rise: float, intercept: float) -> tuple[float, float] | None:
        """Fieller's interval of the x at which the line is 0: where its band holds 0, which is one piece with two ends
        if the slope is not 0 for sure. With u = x − x̄ and ȳ at the centre: (ȳ + b·u)² ≤ s²·(1/n + u²/Σ)."""
        centre = intercept + rise * self.centre
        a = rise**2 - self.scatter**2 / self.squares
        b, c = 2 * centre * rise, centre**2 - self.scatter**2 / self.number
        if a <= 0:
            return None
        root = math.sqrt(max(b * b - 4 * a * c, 0.0))
        return self.centre + (-b - root) / (2 * a), self.centre + (-b + root) / (2 * a)


def slope(rungs: Mapping[float, Sequence[float]], level: float = SIGNIFICANCE) -> Slope:
    """The line through the paired differences of each size, compute → a difference a seed.

    Least squares over all differences, each with the same weight: d = a + b · log2(compute) + error, the errors
    independent and of one variance. Intervals are Student's t with N − 2 degrees of freedom. An effect of a seed that
    is the same at all sizes widens them. Sizes differ in spread, which t does not know.
    There must be two sizes, with compute above 0, and three differences.
    """
    compute = np.array([size for size, values in rungs.items() for _ in values], dtype=np.float64)
    differences = np.array([value for values in rungs.values() for value in values], dtype=np.float64)
    x, degrees = np.log2(compute), len(compute) - 2
    line = stats.linregress(x, differences)
    rise, intercept = float(line.slope), float(line.intercept)
    residuals = differences - intercept - rise * x
    t = float(stats.t.ppf(1 - level / 2, degrees))
    squares = float(((x - x.mean()) ** 2).sum())
    fit = _Fit(len(x), float(x.mean()), squares, t * math.sqrt(float((residuals**2).sum()) / degrees))
    half = fit.scatter / math.sqrt(squares)
    tested = float(compute.min()), float(compute.max())
    crossing, place = _crossing(rise, intercept, tested)
    ends = fit.crossing(rise, intercept)
    return Slope(
        rise, rise - half, rise + half, intercept, crossing, None if ends is None else _powers(ends), place, tested,
        degrees, _misfit(x, differences, residuals), fit,
    )  # fmt: skip


def _crossing(rise: float, intercept: float, tested: tuple[float, float]) -> tuple[float | None, str]:
    where = -intercept / rise if rise else math.inf  # log2
    low, high = math.log2(tested[0]), math.log2(tested[1])
    reach = math.log2(FARTHEST)
    if not low - reach <= where <= high + reach:
        return None, "none"
    return 2**where, "inside" if low <= where <= high else "outside"


def _powers(ends: tuple[float, float]) -> tuple[float, float]:
    """Two to the power of each, as far as there are numbers."""
    low, high = (float(np.exp2(np.clip(end, -1000, 1000))) for end in ends)
    return low, high


def _misfit(x: np.ndarray, differences: np.ndarray, residuals: np.ndarray) -> float | None:
    """The F test of a line against a mean for each size."""
    sizes = [differences[x == size] for size in np.unique(x)]
    within = float(sum(((values - values.mean()) ** 2).sum() for values in sizes))
    free, between = len(x) - len(sizes), len(sizes) - 2
    if within <= 0 or free < 1 or between < 1:
        return None
    lack = max(float((residuals**2).sum()) - within, 0.0)
    return float(stats.f.sf((lack / between) / (within / free), between, free))
