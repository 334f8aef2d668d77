"""Scores in buckets of sources of about one length: where each variant begins to fail."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import NamedTuple

from paddle_tfm import units
from paddle_tfm.comparison.report.figures.line_chart import LineChart, Series
from paddle_tfm.comparison.runs.curves import Point
from paddle_tfm.pages.axis import fit
from paddle_tfm.predictions import of_same_texts
from paddle_tfm.protocols import Metric, Prediction
from paddle_tfm.protocols.metric import NO_LIKELIHOOD
from paddle_tfm.tabular import Table, column
from paddle_tfm.text_lengths import buckets, equal_edges, lengths

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


def chart(
    by_length: ScoresByLength,
    numbers: Mapping[str, int],
    title: str,
    unit: str,
    higher: bool,
    mark: float | None = None,
) -> LineChart:
    """A line for each variant in the order of `numbers`, those of their colours: means over runs with their range, at
    the mean length of each bucket. `title`: of the score; `mark`: a length at which a line stands."""
    series = []
    for variant, number in numbers.items():
        columns = zip(by_length.buckets, zip(*by_length.scores.get(variant, ())))
        finite = [(bucket.length, [value for value in column if math.isfinite(value)]) for bucket, column in columns]
        points = [Point(length, fmean(values), min(values), max(values)) for length, values in finite if values]
        series += [Series(number, variant, points)] if points else []
    x = fit([0.0, *(bucket.length for bucket in by_length.buckets)])
    x_title = f"length of the source in {by_length.unit}"
    return LineChart.of_metric(series, (x_title, title), unit, higher, x=x, mark=mark)


def table(by_length: ScoresByLength, variants: Sequence[str], unit: str, title: str) -> Table[int]:
    """A row for each bucket, means over the runs of each variant."""
    named, scores = by_length.buckets, by_length.scores

    def mean(variant: str, bucket: int) -> float | None:
        values = [value for run in scores[variant] if math.isfinite(value := run[bucket])]
        return fmean(values) if values else None

    text, shown = partial(units.text, unit=unit), [variant for variant in variants if variant in scores]
    columns = [
        column("length", f"length in {by_length.unit}", of=lambda i: named[i].name),
        column("examples", None, "{:,}".format, right=True, of=lambda i: named[i].examples),
        *(column(variant, None, text, right=True, of=partial(mean, variant), none="–") for variant in shown),
    ]
    return Table(columns, range(len(named)), title)
