"""Scores by the length of the source, with intervals from draws of the examples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape

import numpy as np

from paddle_tfm import units
from paddle_tfm.comparison.bootstrap import resampled_values
from paddle_tfm.pages.axis import fit
from paddle_tfm.pages.chart import SIZE, dot, xlabels
from paddle_tfm.protocols import Metric, Prediction
from paddle_tfm.protocols.metric import NO_LIKELIHOOD
from paddle_tfm.text_lengths import buckets, equal_edges, lengths

DRAWS = 1000
BUCKETS = 4
MIN_EXAMPLES = 5  # examples of a bucket; fewer say nothing


def scores_by_length(metric: Metric, predictions: Sequence[Prediction]) -> tuple[str, list[tuple]]:
    """What lengths are counted in, and (lengths, examples, score, low, high) of each bucket: four of like size. low and
    high are the 95% interval of drawing the bucket's examples again."""
    unit, sizes = lengths([item.source for item in predictions])
    rows = []
    for name, indices in buckets(sizes, equal_edges(sizes, BUCKETS)).items():
        chosen = [predictions[i] for i in indices]
        if len(chosen) < MIN_EXAMPLES:
            continue
        drawn = resampled_values(metric, [chosen], DRAWS)[:, 0]
        low, high = np.quantile(drawn, (0.025, 0.975)).tolist()
        rows.append((name, len(chosen), float(metric.compute(chosen, NO_LIKELIHOOD)), low, high))
    return unit, rows


def html(name: str, metric: Metric, predictions: Sequence[Prediction]) -> str:
    """A line for each bucket: score, interval, number of examples."""
    unit, rows = scores_by_length(metric, predictions)
    if not rows:
        return ""
    bounds = units.bounds(metric.unit, metric.higher_is_better)
    axis = fit([value for row in rows for value in row[2:]], bounds)
    grid = "".join(f'<path class="grid" d="M{axis.share(tick) * SIZE:.1f} 0v{SIZE}"/>' for tick in axis.ticks())
    lines = ""
    for length, count, value, low, high in rows:
        half = (high - low) / 2
        score = units.text(value, metric.unit, half)
        ends = f"95%: {units.text(low, metric.unit, half)} to {units.text(high, metric.unit, half)}"
        ends = ends if half > 0 else f"no interval: every draw is {score}"
        left, right = axis.share(low) * SIZE, axis.share(high) * SIZE
        bar = f'<path class="interval" d="M{left:.1f} 500H{right:.1f}M{left:.1f} 380v240M{right:.1f} 380v240"/>'
        bar = bar if half > 0 else ""
        mean = f'<path class="mean" d="{dot(axis.share(value), 0.5)}"/>'
        frame = f'viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none" role="img" aria-label="{score}, {ends}"'
        cells = (
            f'<div role="rowheader" class="name">{escape(length)} {unit}<small>{count:,} examples</small></div>',
            f'<div role="cell" class="score">{score}</div>',
            f'<div role="cell" class="dots c0"><svg {frame}>{grid}{bar}{mean}</svg></div>',
            f'<div role="cell" class="against"><small>{ends}</small></div>',
        )
        lines += f'<div role="row">{"".join(cells)}</div>'
    head = "".join(
        f'<span role="columnheader">{escape(text)}</span>'
        for text in ("length of the source", units.metric_name(name), "score and interval", "")
    )
    note = (
        "The interval is that of drawing the examples again (bootstrap): how far another test set could move a score."
    )
    scale = xlabels(axis, partial(units.tick, unit=metric.unit))
    return (
        '<h3>By length</h3><div class="results" role="table" aria-label="Scores by length">'
        f'<div class="head" role="row">{head}</div>{lines}'
        f'<div class="scale" aria-hidden="true"><div>{scale}</div></div></div><p class="note">{note}</p>'
    )
