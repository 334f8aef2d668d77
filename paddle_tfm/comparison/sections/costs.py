"""Quality against what it costs: parameters, time of training, speed."""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from paddle_tfm import units
from paddle_tfm.comparison.charts import LineChart, key
from paddle_tfm.comparison.columns import around, clock
from paddle_tfm.comparison.facts import Facts
from paddle_tfm.comparison.table import Row
from paddle_tfm.pages.axis import Axis, fit
from paddle_tfm.pages.chart import Point, Series
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Column, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Cost(NamedTuple):
    """What a variant costs: `name` of the chart, the title of its axis, and the values of its runs."""

    name: str
    title: str
    values: dict[str, list[float]]


class Costs(Section):
    """Each variant's score beside its size and the time of its training: what is better may only be larger."""

    heading = "Quality and cost"
    place = 220

    def applies(self, facts: Facts) -> bool:
        """Whether two variants have a score."""
        return len(_scored(facts)) > 1

    def tables(self, facts: Facts) -> dict[str, Table]:
        """Size and time of each variant, and how they differ from the baseline's."""
        return {"costs": _table(facts)}

    def figures(self, facts: Facts) -> dict[str, Figure]:
        """A chart for each cost that differs."""
        return {f"quality-by-{cost.name}": _chart(facts, cost).figure() for cost in _costs(facts)}

    def html(self, facts: Facts) -> str:
        """The charts, then the table."""
        charts = "".join(_chart(facts, cost).html() for cost in _costs(facts))
        note = "A dot is a variant’s mean over seeds, its bar the range of the seeds."
        return f'{key(facts)}<div class="charts">{charts}</div><p class="note">{note}</p>{_table(facts).html()}'


def _scored(facts: Facts) -> list[Row]:
    return [row for row in facts.comparison.rows if math.isfinite(row.mean[facts.comparison.metric])]


def _costs(facts: Facts) -> list[Cost]:
    """Those in which variants differ; parameters only where their numbers do."""
    runs = {row.variant: facts.groups[row.variant] for row in _scored(facts)}
    sizes = {variant: [float(run.results["parameters"]) for run in group] for variant, group in runs.items()}
    minutes = {variant: [run.results["seconds"] / 60 for run in group] for variant, group in runs.items()}
    costs = [Cost("time", "minutes of training steps", minutes)]
    if len({value for values in sizes.values() for value in values}) > 1:
        costs.insert(0, Cost("parameters", "parameters", sizes))
    return costs


def _chart(facts: Facts, cost: Cost) -> LineChart:
    comparison, metric = facts.comparison, facts.comparison.metric
    unit, series = comparison.unit(metric), []
    for row in reversed(_scored(facts)):
        scores = [value for run in facts.groups[row.variant] if math.isfinite(value := run.metric(metric))]
        x = fmean(cost.values[row.variant])
        series.append(
            Series(facts.numbers[row.variant], row.variant, [Point(x, row.mean[metric], min(scores), max(scores))])
        )
    y = fit(
        [value for item in series for point in item.points for value in (point.low, point.high)],
        units.bounds(unit, comparison.higher_is_better),
    )
    better = "higher is better" if comparison.higher_is_better else "lower is better"
    spoken = "; ".join(f"{item.name} {units.tick(item.points[0].y, unit)}" for item in series)
    return LineChart(
        series,
        _axis([item.points[0].x for item in series]),
        y,
        cost.title,
        f"{comparison.split} {units.metric_name(metric)} ({better})",
        spoken,
        lambda value: units.tick(float(f"{value:.6g}"), unit),
    )


def _axis(values: list[float]) -> Axis:
    """From 0, unless that would press all values together: then with room on both sides."""
    low, high = min(values), max(values)
    if low < 0.6 * high:
        return fit([0.0, high * 1.05])
    room = (high - low) or 0.05 * high
    return fit([low - 0.2 * room, high + 0.2 * room])


def _table(facts: Facts) -> Table[Row]:
    comparison = facts.comparison
    base = next((row for row in comparison.rows if row.variant == comparison.baseline), comparison.rows[0])

    def share(value: float, other: float) -> str:
        return f"{100 * (value / other - 1):+.1f}%".replace("-", "−") if other else "–"

    def size(row: Row) -> str:
        return "" if row is base else share(row.parameters, base.parameters)

    def time(row: Row) -> str:
        return "" if row is base else share(row.seconds, base.seconds)

    columns = [
        Column[Row]("variant", lambda row: row.variant, lambda row: {"variant": row.variant}),
        Column[Row](
            units.metric_name(comparison.metric),
            lambda row: around(comparison, comparison.metric, row),
            lambda row: {comparison.metric: row.mean[comparison.metric]},
            right=True,
        ),
        Column[Row](
            "parameters", lambda row: f"{row.parameters:,}", lambda row: {"parameters": row.parameters}, right=True
        ),
        Column[Row]("beside baseline", size, lambda row: {"parameters_of_baseline": base.parameters}, right=True),
        Column[Row]("time", lambda row: clock(row.seconds), lambda row: {"seconds": row.seconds}, right=True),
        Column[Row]("beside baseline", time, lambda row: {"seconds_of_baseline": base.seconds}, right=True),
    ]
    return Table(columns, comparison.rows, "What each variant costs: mean over seeds, time of training steps")
