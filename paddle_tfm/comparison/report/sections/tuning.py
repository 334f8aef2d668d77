"""Tuning: what was chosen for each variant, and quality against the number of trials."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from paddle_tfm import units
from paddle_tfm.comparison.report.figures.charts import LineChart, key
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.report.tuning_record import Chosen, Tuned, read_tuned, shown
from paddle_tfm.pages.axis import fit
from paddle_tfm.pages.chart import Point, Series
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Column, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTE = (
    "The mean of the best over all sets of k of the trials (arXiv:2004.13705), on the validation split: what k trials "
    "may be expected to reach. All variants have the same trials; one that diverged counts as the worst."
)
HALVED = (
    "The best validation score of any trial so far, after each rung, against the steps of all trials until then: what "
    "happened once. Trials were halved, so that most have no score with all steps, and what k of them may be expected "
    "to reach (arXiv:2004.13705) is not known."
)


class Tuning(Section):
    """The values that trials chose for each variant, and what more or fewer trials are worth. The scores above are of
    these values, on seeds that chose nothing."""

    heading = "Tuning"
    place = 160

    def applies(self, facts: Facts) -> bool:
        """Whether the runs are of one sweep whose variants were tuned."""
        return bool(facts.once(_tuned).variants)

    def tables(self, facts: Facts) -> dict[str, Table]:
        """What was chosen, and the expected best of k trials."""
        tuned = facts.once(_tuned)
        tables: dict[str, Table] = {"tuning": _chosen(facts, tuned)}
        if tuned.is_halved:
            return {**tables, "tuning-budget": _rungs(facts, tuned)} if _climbed(facts, tuned) else tables
        return {**tables, "tuning-budget": _budget(facts, tuned)}

    def figures(self, facts: Facts) -> dict[str, Figure]:
        """The expected best against the number of trials, a line a variant; where they are halved, the best so far
        against steps."""
        tuned = facts.once(_tuned)
        return {"tuning-budget": _chart(facts, tuned).figure()} if _lines(facts, tuned) else {}

    def html(self, facts: Facts) -> str:
        """What was chosen, then the chart with its table."""
        tables, tuned = self.tables(facts), facts.once(_tuned)
        if "tuning-budget" not in tables:
            return tables["tuning"].html()
        note = HALVED if tuned.is_halved else NOTE
        chart = f'{key(facts)}{_chart(facts, tuned).html()}<p class="note">{note}</p>'
        return "\n".join([tables["tuning"].html(), chart, tables["tuning-budget"].html()])

    def text(self, facts: Facts) -> list[str]:
        """What was chosen, and where the best is still the outermost that was tried."""
        lines = []
        for name, item in _variants(facts, facts.once(_tuned)).items():
            edge = f" (nothing was tried beyond this {' and '.join(item.at_edge)})" if item.at_edge else ""
            lines.append(f"tuned  {name}: {item.text()}{edge}")
        return lines

    def data(self, facts: Facts) -> dict[str, Any]:
        """What was chosen, the expected best, and of trials that are halved the best so far by steps."""
        tuned = facts.once(_tuned)
        return {
            "metric": tuned.metric,
            "spaces": [dict(space) for space in tuned.spaces],
            "chosen": {name: {"values": item.values, "score": item.score} for name, item in tuned.variants.items()},
            "expected_best": {name: list(map(float, best)) for name, best in tuned.expected().items()},
            "best_by_steps": _climbed(facts, tuned),
        }


def _tuned(facts: Facts) -> Tuned:
    return read_tuned(facts.comparison) or Tuned("", True, [{}], {})


def _variants(facts: Facts, tuned: Tuned) -> dict[str, Chosen]:
    """Those of the comparison, the best first."""
    rows = (row.variant for row in facts.comparison.rows)
    return {variant: tuned.variants[variant] for variant in rows if variant in tuned.variants}


Row = tuple[str, Chosen]


def _chosen(facts: Facts, tuned: Tuned) -> Table[Row]:
    unit, first, last = facts.comparison.unit(tuned.metric), tuned.spaces[0], tuned.spaces[-1]

    def value(path: str) -> Column[Row]:
        def text(row: Row) -> str:
            return f"{shown(row[1].values[path])}{' (outermost)' if path in row[1].at_edge else ''}"

        return Column(path, text, lambda row: {path: row[1].values[path]}, right=True)

    def number(name: str, of: Callable[[Chosen], int]) -> Column[Row]:
        return Column(name, lambda row: str(of(row[1])), lambda row: {name: of(row[1])}, right=True)

    columns = [
        Column[Row]("variant", lambda row: row[0], lambda row: {"variant": row[0]}),
        *map(value, first),
        Column[Row](
            f"validation {units.metric_name(tuned.metric)}",
            lambda row: units.text(row[1].score, unit),
            lambda row: {tuned.metric: row[1].score},
            right=True,
        ),
        number("trials", lambda item: len(item.scores)),
        number("diverged", lambda item: item.diverged),
        *([number("halved", lambda item: item.stopped)] if tuned.is_halved else []),
    ]
    wider = [path for path in first if first[path] != last[path]]
    before = f"; widened from {tuned.space(wider, first=True)}" if wider else ""
    title = f"Chosen on the validation split from {tuned.space()}{before}"
    return Table(columns, list(_variants(facts, tuned).items()), title)


def _climbed(facts: Facts, tuned: Tuned) -> dict[str, list[tuple[int, float]]]:
    """variant → steps of all its trials by the end of a rung, and the best score so far; empty without halving."""
    if not tuned.is_halved:
        return {}
    by_name = {
        name: [rung for rung in item.rungs if math.isfinite(rung[1])] for name, item in _variants(facts, tuned).items()
    }
    return {name: rungs for name, rungs in by_name.items() if rungs}


def _lines(facts: Facts, tuned: Tuned) -> Mapping[str, Sequence[tuple[int, float]]]:
    """variant → budget, in trials or in steps of trials that are halved, and what it reached."""
    if tuned.is_halved:
        return _climbed(facts, tuned)
    expected = tuned.expected()
    return {name: list(enumerate(map(float, expected[name]), 1)) for name in _variants(facts, tuned)}


def _chart(facts: Facts, tuned: Tuned) -> LineChart:
    unit, lines = facts.comparison.unit(tuned.metric), _lines(facts, tuned)
    series = [
        Series(facts.numbers[name], name, [Point(x, y, y, y) for x, y in lines[name]]) for name in reversed(list(lines))
    ]
    y = fit([point.y for item in series for point in item.points], units.bounds(unit, tuned.higher_is_better))
    x = fit([1.0, *(point.x for item in series for point in item.points)])
    better = "higher is better" if tuned.higher_is_better else "lower is better"
    spoken = "; ".join(f"{item.name} {units.tick(item.points[-1].y, unit)} by all" for item in reversed(series))
    title = f"{'' if tuned.is_halved else 'expected '}best validation {units.metric_name(tuned.metric)} ({better})"
    budget = "steps of all trials of a variant" if tuned.is_halved else "trials of each variant"
    return LineChart(series, x, y, budget, title, spoken, partial(units.tick, unit=unit))


def _rungs(facts: Facts, tuned: Tuned) -> Table[tuple[str, int, float]]:
    unit = facts.comparison.unit(tuned.metric)
    rows = [(name, *rung) for name, rungs in _climbed(facts, tuned).items() for rung in rungs]
    columns = [
        Column[tuple[str, int, float]]("variant", lambda row: row[0], lambda row: {"variant": row[0]}),
        Column[tuple[str, int, float]]("steps", lambda row: f"{row[1]:,}", lambda row: {"steps": row[1]}, right=True),
        Column[tuple[str, int, float]](
            "best so far", lambda row: units.text(row[2], unit), lambda row: {tuned.metric: row[2]}, right=True
        ),
    ]
    title = f"Best validation {units.metric_name(tuned.metric)} of any trial after so many steps of all trials"
    return Table(columns, rows, title)


def _budget(facts: Facts, tuned: Tuned) -> Table[int]:
    unit, expected = facts.comparison.unit(tuned.metric), tuned.expected()

    def column(name: str) -> Column[int]:
        def best(k: int) -> float | None:
            return float(expected[name][k - 1]) if k <= len(expected[name]) else None

        return Column(name, lambda k: units.text(best(k), unit), lambda k: {name: best(k)}, right=True)

    columns = [Column[int]("trials", str, lambda k: {"trials": k}, right=True)]
    title = f"Expected best validation {units.metric_name(tuned.metric)} of so many trials"
    most = max(len(best) for best in expected.values())
    return Table([*columns, *map(column, _variants(facts, tuned))], range(1, most + 1), title)
