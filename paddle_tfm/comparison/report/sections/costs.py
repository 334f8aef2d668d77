"""Quality against what it costs: parameters, tokens, time and memory of training, time of decoding."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean
from typing import NamedTuple

from paddle_tfm import units
from paddle_tfm.comparison.columns import clock, metric
from paddle_tfm.comparison.gaps import Confound, confounds
from paddle_tfm.comparison.report.charted import ChartedSection
from paddle_tfm.comparison.report.figures.line_chart import LineChart
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.runs.curves import Point
from paddle_tfm.comparison.table import Row
from paddle_tfm.pages.axis import Axis, fit
from paddle_tfm.tabular import Column, Table, column


class Cost(NamedTuple):
    """A cost of a run (`gaps.COSTS`): what it is called, the title of its axis with what one of its units is there,
    and a value as text."""

    key: str
    name: str
    title: str
    unit: float
    text: Callable[[float], str]


def _mebibytes(value: float) -> str:
    return f"{value:,.3g} MiB" if value < 100 else f"{value:,.0f} MiB"


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.3g} ms a token"


FLOPS = "floating-point operations of training for each token"
DECODING = "milliseconds of decoding for each token that is written"
CACHE = "bytes of key/value cache for each token that is written"
COSTS = (
    Cost("parameters", "parameters", "parameters", 1, "{:,.0f}".format),
    Cost("flops_per_token", "operations", FLOPS, 1, "{:,.0f} a token".format),
    Cost("tokens", "tokens", "target tokens of training", 1, "{:,.0f}".format),
    Cost("seconds", "time", "minutes of training steps", 60, clock),
    Cost("peak_memory_mib", "memory", "MiB of tensors at the peak of training", 1, _mebibytes),
    Cost("decoding_seconds", "decoding", DECODING, 0.001, _milliseconds),
    Cost("cache_bytes", "cache", CACHE, 1, "{:,.0f} bytes".format),
)
ALWAYS = ("parameters", "seconds")  # others are shown where variants differ in them


class Costs(ChartedSection):
    """Each variant's score beside its size, and the time and memory of its training: what is better may only be
    larger."""

    heading = "Quality and cost"
    place = 220

    def applies(self, facts: Facts) -> bool:
        """Whether two variants have a score."""
        return len(_scored(facts)) > 1

    def charts(self, facts: Facts) -> dict[str, LineChart]:
        """The score by each cost that differs, and by time."""
        differing = _differing(facts)
        return {
            f"quality-by-{cost.name}": _chart(facts, cost)
            for cost in _known(facts)
            if cost.key == "seconds" or cost.key in differing
        }

    def notes(self, facts: Facts) -> list[str]:
        """What a dot is, and what a difference of scores may be owed to, as `compare` of two runs says it."""
        decoding = "; decoding: of the test split, all seeds, it depends on how long outputs are"
        is_shown = any(cost.key == "decoding_seconds" for cost in _known(facts))
        owed = facts.once(_owed)
        return [
            f"A dot is a variant’s mean over seeds, its bar the range of the seeds{decoding if is_shown else ''}.",
            *(f"{name}: {'; '.join(cost.sentence for cost in costs)}." for name, costs in owed.items()),
        ]

    def tables(self, facts: Facts) -> dict[str, Table]:
        """What each variant costs."""
        first = [column("variant", of=lambda row: row.variant), metric(facts.comparison, facts.comparison.metric)]
        columns = [*first, *(_column(facts, cost) for cost in _known(facts))]
        title = "What each variant costs, a mean over seeds; time of training steps"
        return {"costs": Table(columns, facts.comparison.rows, title)}

    def data(self, facts: Facts) -> dict[str, list[dict[str, object]]]:
        """The costs of each variant that are not the baseline's."""
        return {name: [cost._asdict() for cost in costs] for name, costs in facts.once(_owed).items()}


def _owed(facts: Facts) -> dict[str, list[Confound]]:
    """Variant → the costs in which it differs from the baseline, of those that differ in any."""
    base, *others = facts.sides()
    owed = {side.name: list(confounds(base, side)) for side in others}
    return {name: costs for name, costs in owed.items() if costs}


def _differing(facts: Facts) -> set[str]:
    return {cost.what for costs in facts.once(_owed).values() for cost in costs}


def _scored(facts: Facts) -> list[Row]:
    return [row for row in facts.comparison.rows if math.isfinite(row.mean[facts.comparison.metric])]


def _known(facts: Facts) -> list[Cost]:
    """The costs that are known of every variant, and always shown or not the same for all."""
    shown = {*ALWAYS, *_differing(facts)}
    return [cost for cost in COSTS if cost.key in shown and all(cost.key in side.costs for side in facts.sides())]


def _chart(facts: Facts, cost: Cost) -> LineChart:
    comparison, name = facts.comparison, facts.comparison.metric
    costs = {side.name: fmean(side.costs[cost.key].values()) / cost.unit for side in facts.sides()}
    means = {row.variant: row.mean[name] for row in _scored(facts)}

    def points(variant: str) -> list[Point]:
        scores = [value for run in facts.groups[variant] if math.isfinite(value := run.metric(name))]
        return [Point(costs[variant], means[variant], min(scores), max(scores))] if variant in means else []

    return LineChart.of_metric(
        facts.lines(points),
        (cost.title, f"{comparison.split} {units.metric_name(name)}"),
        comparison.unit(name),
        comparison.higher_is_better,
        x=_axis([costs[variant] for variant in means]),
    )


def _axis(values: list[float]) -> Axis:
    """From 0, unless that would press all values together: then with room on both sides."""
    low, high = min(values), max(values)
    if low < 0.6 * high:
        return fit([0.0, high * 1.05])
    room = (high - low) or 0.05 * high
    return fit([low - 0.2 * room, high + 0.2 * room])


def _column(facts: Facts, cost: Cost) -> Column[Row]:
    means = {side.name: fmean(side.costs[cost.key].values()) for side in facts.sides()}
    return column(cost.key, cost.name, cost.text, right=True, of=lambda row: means[row.variant])
