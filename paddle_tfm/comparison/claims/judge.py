"""What numbers say of a claim: reproduced, not reproduced or undetermined.

A claim names the set of values that it allows: a difference of 2 points or more, a ratio between 0.9 and 1.1, at most
0. One rule decides for all of them, with the 95% interval (Student's t, over seeds) of the mean:

    reproduced       the whole interval lies within the set
    not reproduced   the whole interval lies outside of it
    undetermined     else: also with a single seed, and where a run has no value because it diverged

So "above by at least x" takes more than a mean that reaches x. As far as means over seeds are normal, a false claim is
called reproduced in at most 2.5% of all repetitions, and a true one not reproduced in at most 2.5% (5% if its set has
two ends). For "closer than x" the rule is the two one-sided tests of Schuirmann (1987), each at 2.5%.

Ratios and percentages are means of logarithms: the geometric mean over seeds of variant / over, or of the ratio of two
places in one variant, whose interval is then above 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from paddle_tfm.comparison.statistics import mean_interval
from paddle_tfm.recipe.sections.claims import ClaimSettings

VERDICTS = ("reproduced", "not reproduced", "undetermined", "no verdict")


@dataclass(frozen=True)
class Bounds:
    """The values that a claim allows, from `low` to `high`; of an open set, neither of these."""

    low: float
    high: float
    is_open: bool = False

    def hold(self, low: float, high: float) -> bool:
        """Whether the interval lies within."""
        return self.low < low and high < self.high if self.is_open else self.low <= low and high <= self.high

    def exclude(self, low: float, high: float) -> bool:
        """Whether the interval lies outside."""
        return high <= self.low or low >= self.high if self.is_open else high < self.low or low > self.high


@dataclass(frozen=True)
class Judgement:
    """A claim, and what was measured: `mean` with the interval from `low` to `high`, of `seeds` values; `lost` more are
    none, because a run diverged. A value or a difference is in the metric's unit; a ratio and a percentage are the
    ratio. `reason`: why runs that are there say nothing."""

    name: str
    claim: ClaimSettings
    verdict: str
    mean: float | None
    low: float | None
    high: float | None
    seeds: int
    lost: int
    unit: str = ""
    reason: str = ""

    def data(self) -> dict:
        """What `comparison.json` holds of it."""
        numbers = {key: getattr(self, key) for key in ("verdict", "mean", "low", "high", "seeds", "lost", "unit")}
        return {"name": self.name, **numbers, "claim": self.claim.model_dump(exclude_none=True)}


@dataclass(frozen=True)
class Claims:
    """The claims of a recipe, judged; `departures` says how its runs were not trained as it says (`--fast`, overrides),
    so that nothing follows for the claims."""

    judgements: Sequence[Judgement]
    departures: Sequence[str] = ()

    def data(self) -> dict:
        """What `comparison.json` holds."""
        return {"claims": [each.data() for each in self.judgements], "departures": list(self.departures)}

    def remark(self) -> str:
        """Why there is no verdict; "" where there is one."""
        if not self.departures:
            return ""
        return f"Trained with {' '.join(self.departures)}, and not as the recipe says: no verdict on its claims."


def judge(
    name: str, claim: ClaimSettings, values: Sequence[float], others: Sequence[float] | None, unit: str = ""
) -> Judgement:
    """The judgement of a claim about `values`, one a seed; or, where it compares, about these and `others`, each pair
    of one seed. NaN: a run without a value."""
    numbers = [_measure(claim, *pair) for pair in zip(values, others or [1.0] * len(values), strict=True)]
    finite = [number for number in numbers if math.isfinite(number)]
    lost = len(numbers) - len(finite)
    if not finite:
        return Judgement(name, claim, "undetermined", None, None, None, 0, lost, unit)
    mean, low, high = mean_interval(finite)
    verdict = "undetermined"
    if low is not None and high is not None and not lost:
        bounds = allowed(claim, unit)
        verdict = "reproduced" if bounds.hold(low, high) else verdict
        verdict = "not reproduced" if bounds.exclude(low, high) else verdict
    if _logarithmic(claim):
        read = lambda number: math.exp(min(number, 700.0))  # noqa: E731  beyond it there is no float
    else:
        read = lambda number: _within_unit(claim, number, unit)  # noqa: E731
    low, high = (None if end is None else read(end) for end in (low, high))
    return Judgement(name, claim, verdict, read(mean), low, high, len(finite), lost, unit)


def _logarithmic(claim: ClaimSettings) -> bool:
    return claim.measure == "percent" or claim.of_a_ratio


def _measure(claim: ClaimSettings, value: float, other: float) -> float:
    """The number of one seed that the interval is of."""
    if _logarithmic(claim):
        return math.log(value / other) if value > 0 and other > 0 else math.nan
    return value if claim.over is None else value - other


def _within_unit(claim: ClaimSettings, end: float, unit: str) -> float:
    """An interval of shares ends where these do, which changes no verdict."""
    if unit != "%":
        return end
    return min(max(end, 0.0 if claim.over is None else -1.0), 1.0)


def allowed(claim: ClaimSettings, unit: str = "") -> Bounds:
    """The values that the claim allows; logarithms, of a ratio or a percentage."""
    scale = 100.0 if unit == "%" and claim.measure == "difference" else 1.0
    if claim.measure == "percent":
        change = lambda percent: math.log1p(percent / 100)  # noqa: E731
    elif claim.of_a_ratio:
        change = lambda ratio: math.log(ratio) if ratio > 0 else -math.inf  # noqa: E731
    else:
        change = lambda value: value / scale  # noqa: E731
    if claim.within is not None:
        return Bounds(change(-claim.within), change(claim.within), is_open=True)
    if claim.above is not None:
        return Bounds(change(claim.above), math.inf, is_open=claim.above == 0)
    if claim.below is not None:
        return Bounds(-math.inf, change(-claim.below), is_open=claim.below == 0)
    low, high = claim.at_least, claim.at_most
    return Bounds(-math.inf if low is None else change(low), math.inf if high is None else change(high))
