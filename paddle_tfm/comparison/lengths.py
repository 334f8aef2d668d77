"""Scores in buckets of sources of about one length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from paddle_tfm.predictions import of_same_texts
from paddle_tfm.protocols import Metric, Prediction
from paddle_tfm.protocols.metric import NO_LIKELIHOOD
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
