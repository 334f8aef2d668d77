"""Scores by the length of the source: where each variant begins to fail."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from paddle_tfm import units
from paddle_tfm.comparison.report.figures.charts import LineChart, key
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.runs.finished import directions
from paddle_tfm.pages.axis import fit
from paddle_tfm.pages.chart import Point, Series
from paddle_tfm.predictions import of_same_texts
from paddle_tfm.protocols import Metric, Prediction, Section
from paddle_tfm.protocols.metric import NO_LIKELIHOOD
from paddle_tfm.tabular import Column, Table
from paddle_tfm.text_lengths import buckets, equal_edges, lengths

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MAX_BUCKETS = 8
MIN_EXAMPLES = 5  # of a bucket; fewer say nothing
FEW_LENGTHS = 12  # that have a bucket each


class Bucket(NamedTuple):
    """Sources of about one length: `name` (its lengths), their mean, and how many."""

    name: str
    length: float
    examples: int


class ScoresByLength(NamedTuple):
    """`unit` of the lengths, the buckets, and variant → of each of its runs a score for each bucket."""

    unit: str
    buckets: list[Bucket]
    scores: dict[str, list[list[float]]]


def scores_by_length(
    predictions: Mapping[str, Mapping[int, Sequence[Prediction]]], metric: Metric
) -> ScoresByLength | None:
    """The metric of all runs (variant → seed → predictions) that are of the same texts; None where there are none, or
    one length only."""
    runs = of_same_texts(
        {(variant, seed): rows for variant, by_seed in predictions.items() for seed, rows in by_seed.items()}
    )
    if not runs:
        return None
    unit, sizes = lengths([item.source for item in next(iter(runs.values()))])
    members = members_of_buckets(sizes)
    scores: dict[str, list[list[float]]] = {}
    for (variant, _), rows in runs.items():
        values = [float(metric.compute([rows[i] for i in inside], NO_LIKELIHOOD)) for inside in members]
        scores.setdefault(variant, []).append(values)
    named = [_bucket([sizes[i] for i in inside]) for inside in members]
    return ScoresByLength(unit, named, scores) if len(named) > 1 else None


def _bucket(sizes: Sequence[int]) -> Bucket:
    low, high = min(sizes), max(sizes)
    return Bucket(str(low) if low == high else f"{low}–{high}", fmean(sizes), len(sizes))


def members_of_buckets(sizes: Sequence[int]) -> list[list[int]]:
    """The indices of the examples of each bucket, short ones first: one for each length where there are few lengths,
    else `MAX_BUCKETS` of about equal numbers of examples. Those of fewer than `MIN_EXAMPLES` are left out."""
    different = sorted(set(sizes))
    edges = different[:-1] if len(different) <= FEW_LENGTHS else equal_edges(sizes, MAX_BUCKETS)
    return [group for group in buckets(sizes, edges).values() if len(group) >= MIN_EXAMPLES]


class Lengths(Section):
    """The deciding metric, or else the first one of texts, by the length of the source in buckets, a line a variant."""

    heading = "Scores by length"
    place = 350

    def applies(self, facts: Facts) -> bool:
        """Whether predictions were written, a metric of the recipe is one of texts, and their lengths differ."""
        return facts.once(_by_length) is not None

    def tables(self, facts: Facts) -> dict[str, Table]:
        """A row for each bucket."""
        return {"scores-by-length": _table(facts, _scores(facts))}

    def figures(self, facts: Facts) -> dict[str, Figure]:
        """A line for each variant."""
        return {"scores-by-length": _chart(facts, _scores(facts)).figure()}

    def html(self, facts: Facts) -> str:
        """The chart and the table."""
        note = "A point is the mean over seeds at the mean length of its bucket; the band is the range of the seeds."
        if (longest := _longest(facts, _scores(facts))) is not None:
            note += f" The dashed line is at the longest source of the training set, {longest} {_scores(facts).unit}."
        chart, table = _chart(facts, _scores(facts)), _table(facts, _scores(facts))
        return f'{key(facts)}{chart.html()}<p class="note">{note}</p>{table.html()}'


def _by_length(facts: Facts) -> ScoresByLength | None:
    """None where there is nothing to show."""
    metric = next(iter(facts.text_metrics().values()), None)
    return None if metric is None else scores_by_length(facts.predictions, metric)


def _name(facts: Facts) -> str:
    """What the metric is called, with the test whose texts are looked at."""
    test = units.metric_and_test(facts.comparison.metric)[1]
    return next(iter(facts.text_metrics())) + (f"@{test}" if test else "")


def _scores(facts: Facts) -> ScoresByLength:
    return facts.once(_by_length) or ScoresByLength("", [], {})


def _longest(facts: Facts, by_length: ScoresByLength) -> float | None:
    """The length of the longest source that any run was trained on; None where that is unknown, or nothing longer is
    tested."""
    known = [(about.get("longest_source") or {}).get(by_length.unit) for about in facts.abouts]
    longest = max((length for length in known if length is not None), default=math.inf)
    return longest if longest < by_length.buckets[-1].length else None


def _chart(facts: Facts, by_length: ScoresByLength) -> LineChart:
    unit, named, scores = by_length
    metric, shown = _name(facts), facts.comparison.unit(_name(facts))
    series = []
    for row in reversed(facts.comparison.rows):
        if runs := scores.get(row.variant):
            values = [[value for value in column if math.isfinite(value)] for column in zip(*runs)]
            points = [
                Point(bucket.length, fmean(column), min(column), max(column))
                for bucket, column in zip(named, values)
                if column
            ]
            series.append(Series(facts.numbers[row.variant], row.variant, points))
    higher = directions(facts.comparison.runs)[units.metric_and_test(metric)[0]]
    ends = [value for item in series for point in item.points for value in (point.low, point.high)]
    y = fit(ends, units.bounds(shown, higher))
    x = fit([0.0, *(bucket.length for bucket in named)])
    name = units.metric_name(metric)
    better = "higher is better" if higher else "lower is better"
    spoken = "; ".join(
        f"{item.name} {units.tick(item.points[-1].y, shown)} at the longest" for item in series if item.points
    )
    return LineChart(
        series, x, y, f"length of the source in {unit}", f"{facts.comparison.split} {name} ({better})", spoken,
        partial(units.tick, unit=shown), _longest(facts, by_length),
    )  # fmt: skip


def _table(facts: Facts, by_length: ScoresByLength) -> Table[int]:
    unit, named, scores = by_length
    shown = facts.comparison.unit(_name(facts))

    def column(variant: str) -> Column[int]:
        def mean(bucket: int) -> float | None:
            values = [value for run in scores[variant] if math.isfinite(value := run[bucket])]
            return fmean(values) if values else None

        return Column(variant, lambda i: units.text(mean(i), shown), lambda i: {variant: mean(i)}, right=True)

    variants = [row.variant for row in facts.comparison.rows if row.variant in scores]
    columns = [
        Column[int](f"length in {unit}", lambda i: named[i].name, lambda i: {"length": named[i].name}),
        Column[int](
            "examples", lambda i: f"{named[i].examples:,}", lambda i: {"examples": named[i].examples}, right=True
        ),
    ]
    title = f"{facts.comparison.split} {units.metric_name(_name(facts))}, means over seeds"
    return Table([*columns, *map(column, variants)], range(len(named)), title)
