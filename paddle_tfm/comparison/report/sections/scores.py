"""Scores: every seed, mean and the interval of the difference to the baseline, a line a variant."""

from __future__ import annotations

import math
from functools import partial
from html import escape
from typing import TYPE_CHECKING

from paddle_tfm import plotting, units
from paddle_tfm.comparison import columns
from paddle_tfm.comparison.columns import around, incomparable
from paddle_tfm.comparison.report.figures.forest_plot import ROW, Bar, ForestPlot
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.report.sections.training import learning_curve
from paddle_tfm.comparison.statistics import CONFIDENCE
from paddle_tfm.comparison.table import Comparison, Row
from paddle_tfm.comparison.verdict import interval, mean_difference, verdict_text
from paddle_tfm.language import _, counted
from paddle_tfm.pages import document
from paddle_tfm.pages.axis import Axis, fit
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Column, Table, column

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 11  # inches


class Results(Section):
    """Every seed, each variant's mean, and the interval of its difference to the baseline."""

    heading = "Scores"
    summary = "learning curves, every seed, means, and the intervals of the differences"
    folded = False
    place = 100

    def tables(self, facts: Facts) -> dict[str, Table]:
        """All of it in one table, and the score of every seed."""
        several = len({run.seed for run in facts.comparison.runs}) > 1
        return {"scores": columns.table(facts.comparison), **({"seeds": _seeds(facts)} if several else {})}

    def figures(self, facts: Facts) -> dict[str, Figure]:
        return {"overview": overview(facts)}

    def html(self, facts: Facts) -> str:
        """The figure with its numbers, and what must stand beside them; folded, every seed, all other metrics, and what
        the numbers mean."""
        seeds = f"<h3>{_('Every seed')}</h3>{_seeds(facts).html()}" if "seeds" in self.tables(facts) else ""
        others = f"<h3>{_('Everything else that was measured')}</h3>{_others(facts.comparison).html()}"
        more = f"{seeds}{others}{document.notes(columns.notes(facts.comparison))}"
        summary = _("every seed, every other metric, and how it was decided")
        caveats = document.notes(facts.comparison.caveats(even_none=True))
        numbers = document.fold(f"<h3>{_('All numbers')}</h3>", summary, more)
        return f"{_plot(facts).html()}{caveats}\n{numbers}"


def overview(facts: Facts) -> Figure:
    """Left: the validation curve of the deciding metric, a line a variant. Right: its final values, in rows that say
    which line is whose."""
    chart, plot = learning_curve(facts, facts.comparison.learned, "steps"), _plot(facts)
    labels = [plotting.label(bar.name) for bar in plot.bars]
    height = 1.9 + sum(max(ROW, plotting.LINE * (label.count("\n") + 2)) for label in labels)
    with plotting.drawing([plot.title, plot.note, *labels], (WIDTH, max(3.9, height))) as figure:
        left, right = figure.subfigures(1, 2, squeeze=False)[0]
        plotting.heading(left, f"During training{(chart and f': {chart.y_title}') or ''}", WIDTH / 2)
        plotting.heading(right, f"At the end: {plot.title}; {plot.note}", WIDTH / 2)
        axes = left.subplots()
        if chart:
            chart.draw(axes)
        else:
            _remark(axes, "no evaluation was logged")
        axes = right.subplots()
        plot.draw(axes)
        if not any(bar.values for bar in plot.bars):
            _remark(axes, "every run diverged")
    return figure


def _remark(axes: Axes, text: str) -> None:
    plotting.plain(axes)
    axes.set(xticks=[])
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=plotting.INK, style="italic")


def _plot(facts: Facts) -> ForestPlot:
    comparison = facts.comparison
    unit, several = comparison.unit(comparison.metric), len(comparison.rows) > 1
    name = f"{_(comparison.split)} {units.metric_name(comparison.metric)}"
    arrow = _("higher is better →") if comparison.higher_is_better else _("← lower is better")
    bars = [_bar(facts, row) for row in comparison.rows]
    signs = _("small dots: seeds; large: their mean")
    if any(bar.has_interval for bar in bars):
        bar = _("; bar: {confidence} interval of the difference, laid at the baseline’s mean (dashed)")
        signs += bar.format(confidence=f"{CONFIDENCE:.0%}")
    return ForestPlot(
        bars,
        _axis(comparison),
        f"{name}, {arrow}",
        signs,
        partial(units.tick, unit=unit),
        base=_base_mean(comparison) if several else math.nan,
        heads=(
            _("variant"),
            units.metric_name(comparison.metric),
            _("each seed, mean, interval") if several else _("each seed, mean"),
            _("against {baseline}").format(baseline=comparison.baseline) if several else "",
        ),
    )


def _axis(comparison: Comparison) -> Axis:
    """All scores, and the intervals as far as the metric's values go."""
    metric, unit = comparison.metric, comparison.unit(comparison.metric)
    scores = [run.metric(metric) for run in comparison.runs]
    values, base = list(scores), _base_mean(comparison)
    for row in comparison.rows:
        if row.difference and row.difference.low is not None and row.difference.high is not None:
            values += [base + row.difference.low, base + row.difference.high]
    bounds = units.bounds(unit, comparison.higher_is_better)
    if not unit and min((score for score in scores if math.isfinite(score)), default=0) >= 0:
        bounds = (0.0, bounds[1])  # a perplexity, a loss: an interval need not go below
    return fit(values, bounds)


def _base_mean(comparison: Comparison) -> float:
    return next(row.mean[comparison.metric] for row in comparison.rows if row.variant == comparison.baseline)


def _bar(facts: Facts, row: Row) -> Bar:
    """A variant; the interval of its difference is laid at the baseline's mean: it crosses the dashed line where the
    verdict is `undetermined`."""
    comparison, metric, difference = facts.comparison, facts.comparison.metric, row.difference
    mean, _plus_minus, spread = around(comparison, metric, row).partition(" ± ")
    lost = _("{number} of {runs} diverged").format(number=row.diverged, runs=len(row.seeds))
    remarks = [lost] if row.diverged else []
    remarks += [_("baseline")] if row.variant == comparison.baseline and len(comparison.rows) > 1 else []
    low = high = math.nan
    spoken = [comparison.text(metric, row.mean[metric], row.spread[metric])]
    if difference and difference.low is not None and difference.high is not None:
        low, high = (_base_mean(comparison) + end for end in (difference.low, difference.high))
        spoken.append(f"{_('95% interval of the difference:')} {interval(comparison, difference)}")
    values = [
        (value, f"{_('seed {number}').format(number=run.seed)}: {comparison.text(metric, value, row.spread[metric])}")
        for run in sorted(facts.groups[row.variant], key=lambda run: run.seed)
        if math.isfinite(value := run.metric(metric))
    ]
    remark, text, cell = ", ".join(remarks), "; ".join(spoken), _against(comparison, row)
    number, score = facts.numbers[row.variant], (mean, spread)
    return Bar(number, row.variant, row.mean[metric], low, high, text, remark, score, values, cell)


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
        none = _("no interval from {seeds}").format(seeds=counted(difference.looked_at, "seed"))
        return f"{text}<small>{none}</small>"
    return f"{text}<small>{CONFIDENCE:.0%}: {escape(interval(comparison, difference))}</small>"


def _seeds(facts: Facts) -> Table[Row]:
    """The score of every seed."""
    comparison, metric = facts.comparison, facts.comparison.metric
    runs = {(variant, run.seed): run for variant, group in facts.groups.items() for run in group}

    def score(seed: int, row: Row) -> float | None:
        run = runs.get((row.variant, seed))
        return value if run and math.isfinite(value := run.metric(metric)) else None

    def text(seed: int, row: Row) -> str:
        if (value := score(seed, row)) is not None:
            return comparison.text(metric, value, row.spread[metric])
        run = runs.get((row.variant, seed))
        return _("diverged") if run and run.results.get("diverged") else "–"

    def values(seed: int, row: Row) -> dict[str, object]:
        return {f"seed {seed}": score(seed, row)}

    seeds = sorted({run.seed for run in comparison.runs})
    shown = [
        Column(_("seed {number}").format(number=seed), partial(text, seed), partial(values, seed), right=True)
        for seed in seeds
    ]
    title = f"{_(comparison.split)} {units.metric_name(metric)}"
    return Table([column("variant", of=lambda row: row.variant), *shown], comparison.rows, title)


def _others(comparison: Comparison) -> Table[Row]:
    """The other metrics, and of one variant its size and time, which of several stand with their costs."""
    whole = columns.table(comparison)
    first, *rest = whole.columns
    dropped = [columns.heading(comparison, comparison.metric), "verdict", "difference", "more seeds", "seeds"]
    dropped += ["parameters", "time"] if len(comparison.rows) > 1 else []
    kept = [each for each in rest if each.heading not in dropped and not each.heading.endswith(" interval")]
    return Table([first, *kept], comparison.rows, _("mean ± standard deviation over seeds"))
