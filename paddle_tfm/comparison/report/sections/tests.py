"""Further tests: the deciding metric of each variant on each of them, and what other batches changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from paddle_tfm import units
from paddle_tfm.comparison.columns import around, heading
from paddle_tfm.comparison.report.further import Further, Invariance, further, metric_on
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.statistics import CONFIDENCE, Verdict
from paddle_tfm.comparison.table import Comparison, Row
from paddle_tfm.comparison.verdict import change, interval, mean_difference, verdict_text
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Column, Table, column


class Tests(Section):
    """The further tests that the recipe names: scores of each variant, differences to the baseline, and what a smaller
    batch or more padding changed."""

    heading = "Further tests"
    place = 130

    def applies(self, facts: Facts) -> bool:
        """Whether the runs had further tests."""
        return bool(facts.once(_further).tests)

    def tables(self, facts: Facts) -> dict[str, Table]:
        """Variants × tests; a row for each difference; a row for each variant in other batches."""
        here = facts.once(_further)
        tables: dict[str, Table] = {"tests": _scores(facts.comparison, here)}
        if here.differences or here.obstacles:
            tables["tests-differences"] = _differences(facts.comparison, here)
        if here.invariance:
            tables["tests-batches"] = _batches(here)
        return tables

    def html(self, facts: Facts) -> str:
        """The tables."""
        return "\n".join(table.html() for table in self.tables(facts).values())

    def text(self, facts: Facts) -> list[str]:
        """A line for each test; the scores stand in the table above it."""
        here, comparison = facts.once(_further), facts.comparison
        said = _said(comparison, here)
        lines = [f"{units.metric_name(metric_on(comparison, test))}: {words}" for test, words in said]
        title = [f"{_title(comparison, here)}:"] if lines else []
        changes = [
            f"{test}: {_changed(each)} of “{variant}” changed, log-probabilities by up to {_drift(each)} nats"
            for (test, variant), each in here.invariance.items()
        ]
        return [*title, *lines, *changes]

    def data(self, facts: Facts) -> dict[str, Any]:
        """The differences, what they are adjusted for, and what other batches changed."""
        here = facts.once(_further)
        return {
            "metric": facts.comparison.learned,
            "adjusted_for": here.adjusted_for(),
            "differences": [
                {"test": test, "variant": variant, **_numbers(each)}
                for (test, variant), each in here.differences.items()
            ],
            "not_compared": [
                {"test": test, "variant": variant, "reason": each.sentence}
                for (test, variant), each in here.obstacles.items()
            ],
            "batches": [
                {"test": test, "variant": variant, **_invariance(each)}
                for (test, variant), each in here.invariance.items()
            ],
        }


def _further(facts: Facts) -> Further:
    """What the further tests of all runs say."""
    return further(facts.comparison)


def _scores(comparison: Comparison, further: Further) -> Table[Row]:
    metrics = [comparison.learned, *(metric_on(comparison, test) for test in further.tests)]

    def score(metric: str) -> Column[Row]:
        def values(row: Row) -> dict[str, object]:
            return {metric: _finite(row.mean.get(metric)), f"{metric}_spread": row.spread.get(metric)}

        return Column(heading(comparison, metric), partial(around, comparison, metric), values, right=True)

    first = Column[Row]("variant", lambda row: row.variant, lambda row: {"variant": row.variant})
    return Table([first, *map(score, metrics)], comparison.rows, "mean ± standard deviation over seeds")


def _differences(comparison: Comparison, further: Further) -> Table:
    rows = []
    for test, variant in _keys(comparison, further):
        difference = further.differences.get((test, variant))
        texts = {"difference": "", "interval": "", "verdict": ""}
        if difference is not None:
            texts["difference"] = mean_difference(comparison, difference)
            texts["interval"] = interval(comparison, difference)
            texts["verdict"] = verdict_text(comparison, difference)
        elif (test, variant) in further.obstacles:
            texts["verdict"] = further.obstacles[test, variant].words
        else:
            texts["verdict"] = "no finished seed in common"
        rows.append({"test": test, "variant": variant, "shown": texts, "numbers": _numbers(difference)})

    def shown(name: str, *keys: str) -> Column:
        head = f"{CONFIDENCE:.0%} interval" if name == "interval" else name
        return Column(
            head, lambda row: row["shown"][name], lambda row: {key: row["numbers"].get(key) for key in keys}, right=True
        )

    columns = [
        column("test"),
        column("variant"),
        shown("difference", "difference"),
        shown("interval", "low", "high", "p"),
        shown("verdict", "verdict"),
    ]
    return Table(columns, rows, _title(comparison, further))


def _batches(further: Further) -> Table:
    rows = [
        {"test": test, "variant": variant, "each": each, **_invariance(each)}
        for (test, variant), each in further.invariance.items()
    ]

    def number(name: str, keys: Sequence[str], text: Callable[[Invariance], str]) -> Column:
        return Column(name, lambda row: text(row["each"]), lambda row: {key: row[key] for key in keys}, right=True)

    columns = [
        column("test"),
        column("variant"),
        number("outputs changed", ("changed_outputs", "outputs"), lambda each: f"{each.changed:,} of {each.outputs:,}"),
        number("log-probabilities by up to", ("drift",), lambda each: f"{_drift(each)} nats"),
    ]
    return Table(columns, rows, "What other batches changed: nothing but rounding, of a correct model")


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


def _said(comparison: Comparison, further: Further) -> Iterator[tuple[str, str]]:
    """Of each test, how the variants stand to the baseline."""
    for test in further.tests:
        parts = []
        for key in _keys(comparison, further):
            difference = further.differences.get(key)
            if key[0] == test and difference is not None:
                parts.append(f"{key[1]} {change(comparison, difference)} {verdict_text(comparison, difference)}")
            elif key[0] == test and key in further.obstacles:
                parts.append(f"{key[1]} {further.obstacles[key].words}")
        if parts:
            yield test, "; ".join(parts)


def _numbers(difference: Verdict | None) -> dict[str, Any]:
    if difference is None:
        return {}
    ends = {"low": difference.low, "high": difference.high, "p": difference.p}
    return {"difference": difference.mean, **ends, "level": difference.level, "verdict": difference.verdict}


def _invariance(each: Invariance) -> dict[str, Any]:
    return {"changed_outputs": each.changed, "outputs": each.outputs, "drift": _finite(each.drift)}


def _changed(each: Invariance) -> str:
    return f"{each.changed:,} of {each.outputs:,} outputs"


def _drift(each: Invariance) -> str:
    return f"{each.drift:.2g}" if math.isfinite(each.drift) else "–"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
