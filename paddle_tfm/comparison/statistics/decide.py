"""Paired values of variants and their baseline → a verdict on each variant, valid for all of them and all looks."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import NamedTuple, TypeVar

import numpy as np

from paddle_tfm.comparison.statistics.holm import holm, holm_levels
from paddle_tfm.comparison.statistics.intervals import SIGNIFICANCE
from paddle_tfm.comparison.statistics.looks import Looks
from paddle_tfm.comparison.statistics.outlook import MoreSeeds, more_seeds

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Verdict:
    """What the seeds say of one variant against the baseline.

    `mean` is that of its paired differences, and their median where a pair lacks a value. `low` and `high` end
    its interval at `level`, None where it has no end. `p` is adjusted for looks and variants. `used` of `pairs` pairs
    were enough for the last of its `looks`; `diverged` and `baseline_diverged` of them lack a value. `more` is None
    once it is settled.
    """

    verdict: str
    mean: float | None
    low: float | None
    high: float | None
    level: float
    p: float
    pairs: int
    used: int
    looks: tuple[int, ...]
    diverged: int
    baseline_diverged: int
    more: MoreSeeds | None

    @property
    def is_settled(self) -> bool:
        """Whether more seeds would tell nothing new."""
        return self.verdict != "undetermined"

    @property
    def looked_at(self) -> int:
        """Of how many pairs mean, interval and verdict are: those of the last look, or all where there was none yet."""
        return self.used or self.pairs

    @property
    def half_width(self) -> float | None:
        """Half of the interval; None where it has not two ends."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


def decide(
    pairs: Mapping[Key, Sequence[tuple[float, float]]],
    rule: Looks | Mapping[Key, Looks],
    higher_is_better: bool = True,
    smallest: float | None = None,
    largest: float = math.inf,
    at_once: bool = False,
) -> dict[Key, Verdict]:
    """A verdict on each variant of `pairs` (or each variant on each of several tests): its value and the baseline's
    with each seed, in the order of the seeds, NaN where a run diverged or failed.

    - `better`, `worse`: the interval excludes 0. P(any variant is called so that does not differ) ≤ 5%: a variant's
      p-value holds at every look (`Looks`), so it holds at the one at which seeds stopped being added, for
      whatever reason, another variant's included; and Holm's method needs p-values that hold, and nothing else.
    - `equivalent`: the interval lies within ± `smallest`, the smallest effect of interest. It comes before `better`:
      who names that effect does not care for a smaller one. Such intervals hold for all variants at once (Bonferroni),
      so that P(any is called so that differs by `smallest` or more) ≤ 5%. Never where a pair lacks a value.
    - `equal`: every difference is exactly 0.
    - `undetermined`: none of these, yet.

    An interval is at the level at which Holm's method tested its variant: it excludes 0 exactly where the verdict says
    so, and each alone holds the true difference in at least 95% of comparisons.

    What must hold: differences that are about normal, or symmetric and not sharper than normal. Where most runs score
    one of two values (all learned or nothing learned), t calls too often; let such a run count as diverged.

    Args:
        rule: when to look, at all variants or at each. `Looks([5])` is the t test of five seeds.
        largest: how far two values of the metric can be apart, where intervals end.
        at_once: test all at the same level, 5% by their number (Bonferroni). Then P(any interval misses its true
            difference) ≤ 5%, at the price of power.
    """
    rules = rule if isinstance(rule, Mapping) else dict.fromkeys(pairs, rule)
    question = _Question(higher_is_better, smallest, largest)
    differences = {name: _paired_differences(values, higher_is_better) for name, values in pairs.items()}
    raw = np.array([_last(rules[name].p_values(item)) for name, item in differences.items()])
    least = SIGNIFICANCE / max(len(raw), 1)
    adjusted, levels = holm(raw), holm_levels(raw, SIGNIFICANCE)
    if at_once:
        adjusted, levels = np.minimum(raw * len(raw), 1), np.full(len(raw), least)
    tests = [_Test(float(p), float(own), least) for p, own in zip(adjusted, levels)]
    return {
        name: _verdict(question, rules[name], test, differences[name], lost=np.isnan(_table(pairs[name])).sum(0))
        for name, test in zip(pairs, tests)
    }


class _Question(NamedTuple):
    higher_is_better: bool
    smallest: float | None
    largest: float


class _Test(NamedTuple):
    """Holm's test of one variant: its adjusted p-value, the level of the test, and the one that suits all at once."""

    p: float
    level: float
    least: float


def _verdict(question: _Question, rule: Looks, test: _Test, differences: np.ndarray, lost: np.ndarray) -> Verdict:
    smallest, looks = question.smallest, rule.upto(len(differences))
    used = max(looks, default=0)
    seen, level = differences[:used], test.level
    ends, wide = rule.interval(seen, level), rule.interval(seen, test.least)
    if used and smallest is not None and np.isfinite(seen).all() and max(map(abs, wide)) <= smallest:
        verdict, ends, level = "equivalent", wide, test.least
    elif used and not seen.any():
        verdict = "equal"
    elif test.p <= SIGNIFICANCE:
        verdict = "better" if _is_better(seen, ends) else "worse"
    else:
        verdict = "undetermined"
    sign = 1 if question.higher_is_better else -1
    low, high = sorted(sign * end for end in ends)
    # by signs a variant may be better although no end is known: the metric's own ends would contradict it
    bounded = used and not (verdict in ("better", "worse") and math.isinf(low) and math.isinf(high))
    return Verdict(
        verdict=verdict,
        mean=_centre(sign * (seen if used else differences)),
        low=_finite(max(low, -question.largest)) if bounded else None,
        high=_finite(min(high, question.largest)) if bounded else None,
        level=level,
        p=test.p,
        pairs=len(differences),
        used=used,
        looks=looks,
        diverged=int(lost[0]),
        baseline_diverged=int(lost[1]),
        more=more_seeds(differences, rule, test.least, smallest) if verdict == "undetermined" else None,
    )


def _is_better(seen: np.ndarray, ends: tuple[float, float]) -> bool:
    """By the interval, and where it does not say, by which of the two won more pairs."""
    if ends[0] > 0 or ends[1] < 0:
        return ends[0] > 0
    return bool((seen > 0).sum() > (seen < 0).sum())


def _last(p: np.ndarray) -> float:
    return float(p[-1]) if len(p) else 1.0


def _centre(differences: np.ndarray) -> float | None:
    if np.isfinite(differences).all():
        return fmean(differences.tolist()) if len(differences) else None
    known = differences[~np.isnan(differences)].tolist()
    return _finite(median(known)) if known else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _table(pairs: Sequence[tuple[float, float]]) -> np.ndarray:
    return np.array(pairs, dtype=np.float64).reshape(-1, 2)


def _paired_differences(pairs: Sequence[tuple[float, float]], higher_is_better: bool) -> np.ndarray:
    """Variant minus baseline [pairs], turned so that above 0 is better; −inf where only the variant lacks a value, +inf
    where only the baseline does, NaN where both do."""
    values = _table(pairs)
    lost = np.isnan(values)
    differences = (values[:, 0] - values[:, 1]) * (1 if higher_is_better else -1)
    differences[lost[:, 0] & ~lost[:, 1]] = -np.inf
    differences[lost[:, 1] & ~lost[:, 0]] = np.inf
    return differences
