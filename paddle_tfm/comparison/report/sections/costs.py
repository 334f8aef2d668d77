"""Quality against what it costs: parameters, tokens, time and memory of training, time of decoding."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from paddle_tfm import units
from paddle_tfm.comparison.columns import around, clock
from paddle_tfm.comparison.gaps import Side, confounds, paired
from paddle_tfm.comparison.report.figures.charts import LineChart, key
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.table import Row
from paddle_tfm.pages.axis import Axis, fit
from paddle_tfm.pages.chart import Point, Series
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Column, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Cost(NamedTuple):
    """A cost of a run (`gaps.COSTS`): what it is called, the title of its axis with what one of its units is there,
    and a value as text."""

    key: str
    name: str
    title: str
    unit: float
    text: Callable[[float], str]


COSTS = (
    Cost("parameters", "parameters", "parameters", 1, lambda value: f"{value:,.0f}"),
    Cost(
        "flops_per_token",
        "operations",
        "floating-point operations of training for each token",
        1,
        lambda value: f"{value:,.0f} a token",
    ),
    Cost("tokens", "tokens", "target tokens of training", 1, lambda value: f"{value:,.0f}"),
    Cost("seconds", "time", "minutes of training steps", 60, clock),
    Cost(
        "peak_memory_mib",
        "memory",
        "MiB of tensors at the peak of training",
        1,
        lambda value: f"{value:,.3g} MiB" if value < 100 else f"{value:,.0f} MiB",
    ),
    Cost(
        "decoding_seconds",
        "decoding",
        "milliseconds of decoding for each token that is written",
        0.001,
        lambda value: f"{1000 * value:,.3g} ms a token",
    ),
    Cost(
        "cache_bytes",
        "cache",
        "bytes of key/value cache for each token that is written",
        1,
        lambda value: f"{value:,.0f} bytes",
    ),
)
ALWAYS = ("parameters", "seconds")  # others are shown where variants differ in them


class Costs(Section):
    """Each variant's score beside its size, and the time and memory of its training: what is better may only be
    larger."""

    heading = "Quality and cost"
    place = 220

    def applies(self, facts: Facts) -> bool:
        """Whether two variants have a score."""
        return len(_scored(facts)) > 1

    def tables(self, facts: Facts) -> dict[str, Table]:
        """What each variant costs, and how that differs from the baseline's."""
        return {"costs": _table(facts)}

    def figures(self, facts: Facts) -> dict[str, Figure]:
        """A chart for each cost that differs."""
        return {f"quality-by-{cost.name}": _chart(facts, cost).figure() for cost in _differing(facts)}

    def html(self, facts: Facts) -> str:
        """The charts, then the table and what it means for the scores."""
        charts = "".join(_chart(facts, cost).html() for cost in _differing(facts))
        note = "A dot is a variant’s mean over seeds, its bar the range of the seeds."
        note += (
            " Decoding: of the test split, all seeds; it depends on how long outputs are."
            if "decoding_seconds" in _shown(facts)
            else ""
        )
        meant = "".join(f"<p><bdi>{escape(name)}</bdi>: {escape(text)}.</p>" for name, text in _meanings(facts))
        return f'{key(facts)}<div class="charts">{charts}</div><p class="note">{note}</p>{_table(facts).html()}{meant}'

    def data(self, facts: Facts) -> dict[str, list[dict[str, object]]]:
        """The costs of each variant that are not the baseline's."""
        base, *others = facts.sides()
        items = {side.name: [cost._asdict() for cost in confounds(base, side)] for side in others}
        return {name: costs for name, costs in items.items() if costs}


def _meanings(facts: Facts) -> list[tuple[str, str]]:
    """Of each variant what a difference of scores may be owed to."""
    base, *others = facts.sides()
    texts = ((side.name, "; ".join(cost.sentence for cost in confounds(base, side))) for side in others)
    return [(name, text) for name, text in texts if text]


def _scored(facts: Facts) -> list[Row]:
    return [row for row in facts.comparison.rows if math.isfinite(row.mean[facts.comparison.metric])]


def _means(facts: Facts, cost: str) -> dict[str, float]:
    """Variant → mean over its runs."""
    return {side.name: fmean(side.costs[cost].values()) for side in facts.sides()}


def _known(facts: Facts) -> list[Cost]:
    """The costs that are known of every variant, and always shown or not the same for all."""
    variants = facts.sides()
    return [
        cost
        for cost in COSTS
        if all(cost.key in side.costs for side in variants) and (cost.key in ALWAYS or _differs(variants, cost.key))
    ]


def _shown(facts: Facts) -> list[str]:
    return [cost.key for cost in _known(facts)]


def _differing(facts: Facts) -> list[Cost]:
    """Those that charts show: time, and others where they differ."""
    scored = {row.variant for row in _scored(facts)}
    variants = [side for side in facts.sides() if side.name in scored]
    return [cost for cost in _known(facts) if cost.key == "seconds" or _differs(variants, cost.key)]


def _differs(variants: Sequence[Side], cost: str) -> bool:
    """Whether another variant's runs cost something else than the first one's."""
    first, *others = variants
    pairs = [paired(first, side, cost) for side in others]
    return any(pair is not None and fmean(pair[0]) != fmean(pair[1]) for pair in pairs)


def _chart(facts: Facts, cost: Cost) -> LineChart:
    comparison, metric, costs = facts.comparison, facts.comparison.metric, _means(facts, cost.key)
    unit, series = comparison.unit(metric), []
    for row in reversed(_scored(facts)):
        scores = [value for run in facts.groups[row.variant] if math.isfinite(value := run.metric(metric))]
        x = costs[row.variant] / cost.unit
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
        partial(units.tick, unit=unit),
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

    def score(row: Row) -> dict[str, object]:
        return {comparison.metric: row.mean[comparison.metric]}

    columns = [
        Column[Row]("variant", lambda row: row.variant, lambda row: {"variant": row.variant}),
        Column[Row](
            units.metric_name(comparison.metric), lambda row: around(comparison, comparison.metric, row), score,
            right=True,
        ),
    ]  # fmt: skip
    title = (
        "What each variant costs, a mean over seeds, and how much more than the baseline, in seeds that both have; "
        "time of training steps"
    )
    return Table([*columns, *(_column(facts, cost) for cost in _known(facts))], comparison.rows, title)


def _column(facts: Facts, cost: Cost) -> Column[Row]:
    means = _means(facts, cost.key)
    first, *others = facts.sides()
    ratios = {side.name: ratio for side in others if (ratio := _ratio(first, side, cost.key)) is not None}

    def text(row: Row) -> str:
        value, ratio = means[row.variant], ratios.get(row.variant, 1.0)
        return cost.text(value) if ratio == 1 else f"{cost.text(value)} ({100 * (ratio - 1):+.1f}%)".replace("-", "−")

    return Column(
        cost.name,
        text,
        lambda row: {cost.key: means[row.variant], f"{cost.key}_of_baseline": means[facts.baseline]},
        right=True,
    )


def _ratio(one: Side, other: Side, cost: str) -> float | None:
    """Of the other side's cost to that of one; None where that is unknown or nothing."""
    pair = paired(one, other, cost)
    return None if pair is None or not fmean(pair[0]) else fmean(pair[1]) / fmean(pair[0])
