"""Tuning: what was chosen for each variant, and quality against the number of trials."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from paddle_tfm import units
from paddle_tfm.comparison.charts import LineChart, key
from paddle_tfm.comparison.facts import Facts
from paddle_tfm.comparison.tuned import Chosen, Tuned, read_tuned
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
HALVED = "Trials were halved, so that most of them have no score with all steps: there is no curve over their number."


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
        return {**tables, "tuning-budget": _budget(facts, tuned)} if tuned.expected() else tables

    def figures(self, facts: Facts) -> dict[str, Figure]:
        """The expected best against the number of trials, a line a variant."""
        tuned = facts.once(_tuned)
        return {"tuning-budget": _chart(facts, tuned).figure()} if tuned.expected() else {}

    def html(self, facts: Facts) -> str:
        """What was chosen, then the chart with its table."""
        tables, tuned = self.tables(facts), facts.once(_tuned)
        if not tuned.expected():
            return f'{tables["tuning"].html()}<p class="note">{HALVED}</p>'
        chart = f'{key(facts)}{_chart(facts, tuned).html()}<p class="note">{NOTE}</p>'
        return "\n".join([tables["tuning"].html(), chart, tables["tuning-budget"].html()])

    def text(self, facts: Facts) -> list[str]:
        """What was chosen, and where the best is still the outermost that was tried."""
        lines = []
        for name, item in _variants(facts, facts.once(_tuned)).items():
            values = ", ".join(f"{path} {_value(value)}" for path, value in item.values.items())
            edge = f" (nothing was tried beyond this {' and '.join(item.at_edge)})" if item.at_edge else ""
            lines.append(f"tuned  {name}: {values}{edge}")
        return lines

    def data(self, facts: Facts) -> dict[str, Any]:
        """What was chosen, and the expected best."""
        tuned = facts.once(_tuned)
        return {
            "metric": tuned.metric,
            "spaces": [dict(space) for space in tuned.spaces],
            "chosen": {name: {"values": item.values, "score": item.score} for name, item in tuned.variants.items()},
            "expected_best": {name: list(map(float, best)) for name, best in tuned.expected().items()},
        }


def _tuned(facts: Facts) -> Tuned:
    return read_tuned(facts.comparison) or Tuned("", True, [{}], {})


def _variants(facts: Facts, tuned: Tuned) -> dict[str, Chosen]:
    """Those of the comparison, the best first."""
    rows = (row.variant for row in facts.comparison.rows)
    return {variant: tuned.variants[variant] for variant in rows if variant in tuned.variants}


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


Row = tuple[str, Chosen]


def _chosen(facts: Facts, tuned: Tuned) -> Table[Row]:
    unit, first, last = facts.comparison.unit(tuned.metric), tuned.spaces[0], tuned.spaces[-1]

    def value(path: str) -> Column[Row]:
        def text(row: Row) -> str:
            return f"{_value(row[1].values[path])}{' (outermost)' if path in row[1].at_edge else ''}"

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
        *([number("halved", lambda item: item.stopped)] if not tuned.expected() else []),
    ]
    wider = [path for path in first if first[path] != last[path]]
    before = f"; widened from {tuned.space(wider, first=True)}" if wider else ""
    title = f"Chosen on the validation split from {tuned.space()}{before}"
    return Table(columns, list(_variants(facts, tuned).items()), title)


def _chart(facts: Facts, tuned: Tuned) -> LineChart:
    unit, expected = facts.comparison.unit(tuned.metric), tuned.expected()
    series = [
        Series(facts.numbers[name], name, [Point(k, y, y, y) for k, y in enumerate(map(float, expected[name]), 1)])
        for name in reversed(_variants(facts, tuned))
    ]
    y = fit([point.y for item in series for point in item.points], units.bounds(unit, tuned.higher_is_better))
    x = fit([1.0, *(point.x for item in series for point in item.points)])
    better = "higher is better" if tuned.higher_is_better else "lower is better"
    spoken = "; ".join(f"{item.name} {units.tick(item.points[-1].y, unit)} by all" for item in reversed(series))
    title = f"expected best validation {units.metric_name(tuned.metric)} ({better})"
    return LineChart(
        series, x, y, "trials of each variant", title, spoken, lambda value: units.tick(float(f"{value:.6g}"), unit)
    )


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
