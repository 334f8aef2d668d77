"""Scores: every seed, mean and the interval of the difference to the baseline, a line a variant."""

from __future__ import annotations

import math
from functools import partial
from html import escape
from typing import TYPE_CHECKING

from paddle_tfm import units
from paddle_tfm.comparison import columns
from paddle_tfm.comparison.columns import around, clock, heading, incomparable, lost
from paddle_tfm.comparison.report.figures.overview import draw
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.statistics import CONFIDENCE
from paddle_tfm.comparison.table import Comparison, Row
from paddle_tfm.comparison.verdict import interval, mean_difference, verdict_text
from paddle_tfm.pages.axis import Axis, fit
from paddle_tfm.pages.chart import SIZE, colour, dot, xlabels
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Column, Table
from paddle_tfm.units import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Results(Section):
    """Every seed, each variant's mean, and the interval of its difference to the baseline."""

    heading = "Scores"
    place = 100

    def tables(self, facts: Facts) -> dict[str, Table]:
        """All of it in one table, and the score of every seed."""
        several = len({run.seed for run in facts.comparison.runs}) > 1
        return {"scores": columns.table(facts.comparison), **({"seeds": _seeds(facts)} if several else {})}

    def figures(self, facts: Facts) -> dict[str, Figure]:
        """Curves and final values."""
        return {"overview": draw(facts.comparison)}

    def html(self, facts: Facts) -> str:
        """The figure with its numbers, what its signs mean, the score of every seed, and all other metrics."""
        seeds = f"<h3>Every seed</h3>{_seeds(facts).html()}" if "seeds" in self.tables(facts) else ""
        others = f"<h3>Everything else that was measured</h3>{_others(facts.comparison).html()}"
        return f"{_dots(facts)}{_key(facts.comparison)}\n{seeds}\n{others}"


def _dots(facts: Facts) -> str:
    comparison = facts.comparison
    axis = _axis(comparison)
    rows = "".join(_row(facts, row, axis) for row in comparison.rows)
    unit = comparison.unit(comparison.metric)
    arrow = "higher is better →" if comparison.higher_is_better else "← lower is better"
    name = f"{comparison.split} {units.metric_name(comparison.metric)}, {arrow}"
    several = len(comparison.rows) > 1
    against = f"against {comparison.baseline}" if several else ""
    return (
        f'<div class="results" role="table" aria-label="Scores by variant">'
        f'<div class="head" role="row"><span role="columnheader">variant</span><span role="columnheader">'
        f'{escape(units.metric_name(comparison.metric))}</span><span role="columnheader">each seed, mean'
        f'{", interval" if several else ""}</span><span role="columnheader"><bdi>{escape(against)}</bdi></span></div>'
        f"{rows}"
        f'<div class="scale" aria-hidden="true"><div>{xlabels(axis, partial(units.tick, unit=unit))}'
        f'<p class="note">{escape(name)}</p></div></div></div>'
    )


def _axis(comparison: Comparison) -> Axis:
    """All scores, and the intervals as far as the metric's values go."""
    metric = comparison.metric
    values = [run.metric(metric) for run in comparison.runs]
    base = _base_mean(comparison)
    for row in comparison.rows:
        if row.difference and row.difference.low is not None and row.difference.high is not None:
            values += [base + row.difference.low, base + row.difference.high]
    bounds = units.bounds(comparison.unit(metric), comparison.higher_is_better)
    scores = [run.metric(metric) for run in comparison.runs]
    if not comparison.unit(metric) and min((score for score in scores if math.isfinite(score)), default=0) >= 0:
        bounds = (0.0, bounds[1])  # a perplexity, a loss: an interval need not go below
    return fit(values, bounds)


def _base_mean(comparison: Comparison) -> float:
    return next(row.mean[comparison.metric] for row in comparison.rows if row.variant == comparison.baseline)


def _row(facts: Facts, row: Row, axis: Axis) -> str:
    comparison = facts.comparison
    mean, _, spread = around(comparison, comparison.metric, row).partition(" ± ")
    score = f"{escape(mean)}{f' <small>± {escape(spread)}</small>' if spread else ''}"
    notes = [f"{row.diverged} of {len(row.seeds)} diverged"] if row.diverged else []
    is_base = row.variant == comparison.baseline and len(comparison.rows) > 1
    notes += ["baseline"] if is_base else []
    swatch = f'<i class="swatch {colour(facts.numbers[row.variant])}"></i>'
    small = f"<small>{escape(', '.join(notes))}</small>" if notes else ""
    return (
        f'<div role="row"><div role="rowheader" class="name">{swatch}<bdi>{escape(row.variant)}</bdi>{small}</div>'
        f'<div role="cell" class="score">{score}</div>'
        f'<div role="cell" class="dots {colour(facts.numbers[row.variant])}">{_drawing(facts, row, axis)}</div>'
        f'<div role="cell" class="against">{_against(comparison, row)}</div></div>\n'
    )


def _against(comparison: Comparison, row: Row) -> str:
    if row.variant == comparison.baseline:
        return ""
    difference = row.difference
    if difference is None:
        return incomparable(comparison, row)
    mean = mean_difference(comparison, difference)
    words = escape(verdict_text(comparison, difference))
    text = f'<b class="badge {difference.verdict}">{words}</b> <span>{escape(mean)}</span> '
    if difference.low is None and difference.high is None:
        return f"{text}<small>no interval from {plural(difference.looked_at, 'seed')}</small>"
    return f"{text}<small>{CONFIDENCE:.0%}: {escape(interval(comparison, difference))}</small>"


def _drawing(facts: Facts, row: Row, axis: Axis) -> str:
    """Seeds, the mean, and the difference's interval laid at the baseline's mean: it crosses the dashed line where the
    verdict is `undetermined`. It ends where the metric's values end."""
    comparison, metric = facts.comparison, facts.comparison.metric
    base = _base_mean(comparison)
    parts = [f'<path class="grid" d="M{axis.share(tick) * SIZE:.1f} 0v{SIZE}"/>' for tick in axis.ticks()]
    if len(comparison.rows) > 1 and math.isfinite(base):
        parts.append(f'<path class="base" d="M{axis.share(base) * SIZE:.1f} 0v{SIZE}"/>')
    difference, spoken = row.difference, [comparison.text(metric, row.mean[metric], row.spread[metric])]
    if difference and difference.low is not None and difference.high is not None and math.isfinite(base):
        low, high = base + difference.low, base + difference.high
        left, right = axis.share(low) * SIZE, axis.share(high) * SIZE
        caps = "".join(
            f"M{place:.1f} 610v180"
            for place, value in ((left, low), (right, high))
            if axis.low - 1e-9 <= value <= axis.high + 1e-9
        )
        title = f"{CONFIDENCE:.0%} interval of the difference: {interval(comparison, difference)}"
        spoken.append(title)
        parts.append(
            f'<path class="interval" data-low="{difference.low!r}" data-high="{difference.high!r}" '
            f'd="M{left:.1f} 700H{right:.1f}{caps}"><title>{escape(title)}</title></path>'
        )
    for run in sorted(facts.groups[row.variant], key=lambda run: run.seed):
        if math.isfinite(value := run.metric(metric)):
            text = f"seed {run.seed}: {comparison.text(metric, value, row.spread[metric])}"
            parts.append(f'<path class="seed" d="{dot(axis.share(value), 0.3)}"><title>{escape(text)}</title></path>')
    if math.isfinite(row.mean[metric]):
        parts.append(f'<path class="mean" d="{dot(axis.share(row.mean[metric]), 0.3)}"/>')
    label = f"{row.variant}: {'; '.join(spoken)}"
    domain = f'data-from="{axis.low!r}" data-to="{axis.high!r}" data-base="{base!r}"'
    return (
        f'<svg viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none" role="img" aria-label="{escape(label)}" {domain}>'
        f"{''.join(parts)}</svg>"
    )


def _key(comparison: Comparison) -> str:
    signs = [("seed", dot(0.5, 0.5), "one seed"), ("mean", dot(0.5, 0.5), "their mean")]
    if any(row.difference and row.difference.low is not None for row in comparison.rows):
        text = f"{CONFIDENCE:.0%} interval of the difference, laid at the baseline’s mean"
        signs += [
            ("interval", "M0 500H1000M0 200v600M1000 200v600", text),
            ("base", "M500 0v1000", "the baseline’s mean"),
        ]
    items = "".join(
        f'<li style="--c: var(--soft)"><svg viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none" aria-hidden="true">'
        f'<path class="{kind}" d="{d}"/></svg>{escape(text)}</li>'
        for kind, d, text in signs
    )
    return f'<ul class="key">{items}</ul>'


def _seeds(facts: Facts) -> Table[Row]:
    """The score of every seed."""
    comparison, metric = facts.comparison, facts.comparison.metric
    runs = {(variant, run.seed): run for variant, group in facts.groups.items() for run in group}

    def column(seed: int) -> Column[Row]:
        def score(row: Row) -> float | None:
            run = runs.get((row.variant, seed))
            return value if run and math.isfinite(value := run.metric(metric)) else None

        def text(row: Row) -> str:
            if (value := score(row)) is not None:
                return comparison.text(metric, value, row.spread[metric])
            run = runs.get((row.variant, seed))
            return "diverged" if run and run.results.get("diverged") else "–"

        return Column(f"seed {seed}", text, lambda row: {f"seed {seed}": score(row)}, right=True)

    seeds = sorted({run.seed for run in comparison.runs})
    title = f"{comparison.split} {units.metric_name(metric)}"
    return Table([_variant(), *map(column, seeds)], comparison.rows, title)


def _others(comparison: Comparison) -> Table[Row]:
    """The other metrics, sizes and times."""

    def column(name: str) -> Column[Row]:
        return Column(heading(comparison, name), lambda row: around(comparison, name, row), lambda row: {}, right=True)

    facts = {
        "parameters": lambda row: f"{row.parameters:,}",
        "tokens/s": lambda row: f"{row.tokens_per_second:,.0f}",
        "time": lambda row: clock(row.seconds),
        "diverged": lost,
    }
    columns = [Column[Row](name, text, lambda row: {}, right=True) for name, text in facts.items()]
    metrics = [column(name) for name in comparison.shown()[1:]]
    return Table([_variant(), *metrics, *columns], comparison.rows, "mean ± standard deviation over seeds")


def _variant() -> Column[Row]:
    return Column("variant", lambda row: row.variant, lambda row: {"variant": row.variant})
