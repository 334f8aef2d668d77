"""Further tests: differences to the baseline on each, and what other batches changed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from paddle_tfm import units
from paddle_tfm.comparison.columns import difference_and_interval
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.runs.comparable import Obstacle, obstacles
from paddle_tfm.comparison.runs.finished import Pairs, Result, further_tests, grouped, pairs
from paddle_tfm.comparison.statistics import CONFIDENCE, Verdict
from paddle_tfm.comparison.table import Comparison, verdicts
from paddle_tfm.comparison.verdict import change, verdict_text
from paddle_tfm.language import _
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Column, Table, column
from paddle_tfm.units import plural


@dataclass(frozen=True)
class Invariance:
    """What other batches changed: outputs of a variant, of how many (`outputs`, over all seeds), and the largest change
    of a reference's log-probability, in nats (`drift`, None where one is no number)."""

    changed_outputs: int
    outputs: int
    drift: float | None

    def words(self) -> tuple[str, str]:
        """`2 of 60`, and how far log-probabilities changed."""
        drift = "–" if self.drift is None else f"{self.drift:.2g}"
        return f"{self.changed_outputs:,} of {self.outputs:,}", f"{drift} nats"


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
        tests, variants = (len({key[part] for key in self.differences}) for part in (0, 1))
        number = f"{plural(variants, 'variant')} on {plural(tests, 'test')} (Holm)"
        return number if len(self.differences) > 1 else ""


def metric_on(comparison: Comparison, test: str) -> str:
    """The deciding metric on a further test: `exact_match@beyond`."""
    return f"{comparison.learned}{units.AT}{test}"


def further(comparison: Comparison) -> Further:
    """What the further tests of all runs say."""
    groups, tests = grouped(comparison.runs), further_tests(comparison.runs)
    paired: dict[tuple[str, str], Pairs] = {}
    apart: dict[tuple[str, str], Obstacle] = {}
    for test in tests:
        name = metric_on(comparison, test)
        apart |= {(test, variant): each for variant, each in obstacles(groups, comparison.baseline, name).items()}
        for variant, runs in groups.items():
            if variant != comparison.baseline and (test, variant) not in apart:
                paired[test, variant] = pairs(runs, groups[comparison.baseline], name)
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
    drift = max((float(each["drift"]) for each in facts), key=lambda value: (math.isnan(value), value))
    changed, outputs = (sum(each[key] for each in facts) for key in ("changed_outputs", "examples"))
    return Invariance(changed, outputs, drift if math.isfinite(drift) else None)


class Tests(Section):
    """The further tests that the recipe names: differences to the baseline, and what a smaller batch or more padding
    changed."""

    heading = "Further tests"
    summary = "differences on the other tests that the recipe names"
    place = 130

    def applies(self, facts: Facts) -> bool:
        here = facts.once(_further)
        return bool(here.differences or here.obstacles or here.invariance)

    def tables(self, facts: Facts) -> dict[str, Table]:
        """A row for each difference, and one for each variant in other batches; scores stand in the table above."""
        here, comparison = facts.once(_further), facts.comparison
        tables: dict[str, Table] = {}
        if here.differences or here.obstacles:
            tables["tests-differences"] = _differences(comparison, here)
        if here.invariance:
            tables["tests-batches"] = _batches(here)
        return tables

    def text(self, facts: Facts) -> list[str]:
        here, comparison = facts.once(_further), facts.comparison
        lines = [f"{units.metric_name(metric_on(comparison, test))}: {words}" for test, words in _said(facts, here)]
        title = [f"{_title(comparison, here)}:"] if lines else []
        changes = [
            f"{test}: {each[0]} outputs of “{variant}” changed, log-probabilities by up to {each[1]}"
            for (test, variant), item in here.invariance.items()
            for each in [item.words()]
        ]
        return [*title, *lines, *changes]

    def data(self, facts: Facts) -> dict[str, Any]:
        here = facts.once(_further)

        def rows(items: Mapping[tuple[str, str], dict[str, Any]]) -> list[dict[str, Any]]:
            return [{"test": test, "variant": variant, **values} for (test, variant), values in items.items()]

        return {
            "metric": facts.comparison.learned,
            "adjusted_for": here.adjusted_for(),
            "differences": rows({key: _numbers(each) for key, each in here.differences.items()}),
            "not_compared": rows({key: {"reason": each.sentence} for key, each in here.obstacles.items()}),
            "batches": rows({key: asdict(each) for key, each in here.invariance.items()}),
        }


def _further(facts: Facts) -> Further:
    """What the further tests of all runs say."""
    return further(facts.comparison)


def _differences(comparison: Comparison, further: Further) -> Table[tuple[str, str]]:
    def words(key: tuple[str, str]) -> str:
        if key in further.differences:
            return verdict_text(comparison, further.differences[key])
        return further.obstacles[key].words if key in further.obstacles else _("no finished seed in common")

    def verdict(key: tuple[str, str]) -> dict[str, object]:
        return {"verdict": getattr(further.differences.get(key), "verdict", None)}

    keys = _keys(comparison, further)
    columns = [
        column("test", of=lambda key: key[0]),
        column("variant", of=lambda key: key[1]),
        *difference_and_interval(comparison, keys, further.differences.get),
        Column("verdict", words, verdict, right=True),
    ]
    return Table(columns, keys, _title(comparison, further))


def _batches(further: Further) -> Table[tuple[str, str]]:
    of = further.invariance

    def changed(key: tuple[str, str]) -> dict[str, object]:
        return {"changed_outputs": of[key].changed_outputs, "outputs": of[key].outputs}

    def drift(key: tuple[str, str]) -> dict[str, object]:
        return {"drift": of[key].drift}

    columns: list[Column[tuple[str, str]]] = [
        column("test", of=lambda key: key[0]),
        column("variant", of=lambda key: key[1]),
        Column("outputs changed", lambda key: of[key].words()[0], changed, right=True),
        Column("log-probabilities by up to", lambda key: of[key].words()[1], drift, right=True),
    ]
    return Table(columns, list(of), _("What other batches changed: only rounding, if the model is correct"))


def _title(comparison: Comparison, further: Further) -> str:
    """What the differences are."""
    adjusted = further.adjusted_for()
    return (
        f"difference to {comparison.baseline}, paired by seed, with its {CONFIDENCE:.0%} interval"
        f"{f', adjusted for {adjusted}' if adjusted else ''}"
    )


def _keys(comparison: Comparison, further: Further) -> list[tuple[str, str]]:
    variants = [row.variant for row in comparison.rows if row.variant != comparison.baseline]
    return [(test, variant) for test in further.tests for variant in variants]


def _said(facts: Facts, further: Further) -> Iterator[tuple[str, str]]:
    """Of each test, how the variants stand to the baseline."""
    comparison = facts.comparison
    words = {key: obstacle.words for key, obstacle in further.obstacles.items()}
    words |= {
        key: f"{change(comparison, each)} {verdict_text(comparison, each)}" for key, each in further.differences.items()
    }
    for test in further.tests:
        keys = [key for key in _keys(comparison, further) if key[0] == test and key in words]
        if keys:
            yield test, "; ".join(f"{key[1]} {words[key]}" for key in keys)


def _numbers(difference: Verdict) -> dict[str, Any]:
    names = ("low", "high", "p", "level", "verdict")
    return {"difference": difference.mean, **{name: getattr(difference, name) for name in names}}
