"""Further tests of a comparison's runs: differences to the baseline on each, and what other batches changed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paddle_tfm import units
from paddle_tfm.comparison.runs.comparable import Obstacle, obstacles
from paddle_tfm.comparison.runs.finished import Pairs, Result, further_tests, grouped, pairs
from paddle_tfm.comparison.statistics import Verdict
from paddle_tfm.comparison.table import Comparison, verdicts


@dataclass(frozen=True)
class Invariance:
    """What other batches changed: outputs of a variant, of how many (`outputs`, over all seeds), and the largest change
    of a reference's log-probability, in nats."""

    changed: int
    outputs: int
    drift: float


@dataclass(frozen=True)
class Further:
    """`tests` in the order of the recipe; (test, variant) → its difference to the baseline, or why there is none.

    The verdicts hold together: the error of all of them is at most 5%, as Holm's method has it for the variants of one
    comparison. That of the run's own test is not among them.
    """

    tests: Sequence[str]
    differences: Mapping[tuple[str, str], Verdict]
    obstacles: Mapping[tuple[str, str], Obstacle]
    invariance: Mapping[tuple[str, str], Invariance]

    def adjusted_for(self) -> str:
        """`3 variants on 2 tests`, of which intervals take account; "" where there is a single difference."""
        number = len(self.differences)
        variants, tests = ({key[part] for key in self.differences} for part in (1, 0))
        sizes = ((variants, "variant"), (tests, "test"))
        names = [f"{len(each)} {what}{'s' if len(each) > 1 else ''}" for each, what in sizes]
        return f"{' on '.join(names)} (Holm)" if number > 1 else ""


def metric_on(comparison: Comparison, test: str) -> str:
    """The deciding metric on a further test: `exact_match@beyond`."""
    return f"{comparison.learned}{units.AT}{test}"


def further(comparison: Comparison) -> Further:
    """What the further tests of all runs say."""
    groups, tests = grouped(comparison.runs), further_tests(comparison.runs)
    baseline = comparison.baseline or next(iter(groups))
    paired: dict[tuple[str, str], Pairs] = {}
    apart: dict[tuple[str, str], Obstacle] = {}
    for test in tests:
        metric = metric_on(comparison, test)
        apart |= {(test, variant): each for variant, each in obstacles(groups, baseline, metric).items()}
        for variant, runs in groups.items():
            if variant != baseline and (test, variant) not in apart:
                paired[test, variant] = pairs(runs, groups[baseline], metric)
    unit = comparison.unit(comparison.metric)
    differences = verdicts(paired, unit, comparison.higher_is_better, comparison.question)
    changes = {
        (test, variant): each for test in tests for variant, runs in groups.items() if (each := _invariance(runs, test))
    }
    return Further(tests, differences, apart, changes)


def _invariance(runs: Sequence[Result], test: str) -> Invariance | None:
    """None where batches were as usual."""
    facts = [run.tests[test] for run in runs if "drift" in run.tests.get(test, {})]
    if not facts:
        return None
    drifts = [float(each["drift"]) for each in facts]
    drift = math.nan if any(map(math.isnan, drifts)) else max(drifts)
    return Invariance(sum(each["changed_outputs"] for each in facts), sum(each["examples"] for each in facts), drift)
