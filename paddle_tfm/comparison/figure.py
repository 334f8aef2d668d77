"""The figure of a comparison: curves over training on the left, test values of every seed on the right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from paddle_tfm import plotting, units
from paddle_tfm.comparison.runs import Result, grouped
from paddle_tfm.comparison.table import Comparison, Row
from paddle_tfm.plotting import FAINT, INK, LineStyle

MAX_NAME = 26  # characters of a name
MAX_TICKS = 6  # of the values, whose labels are long
EDGE = 0.03  # beyond 0 and 100%, of an axis
LOG_RANGE = 10  # the largest value over the smallest, from which an axis is logarithmic


def draw(comparison: Comparison) -> Figure:
    """Left: the validation curve of the deciding metric, a line a variant. Right: its values on the test split."""
    groups = grouped(comparison.runs)
    styles = {variant: plotting.line_style(number) for number, variant in enumerate(groups)}
    rows = len(comparison.rows)
    legend_rows = math.ceil(rows / 4) if rows > 1 else 0
    characters = {character for text in (comparison.metric, *groups) for character in _name(text)}
    with plotting.settings(plotting.fonts(characters)[0]):
        figure = plotting.new_figure((11, max(3.9, 1.4 + 0.32 * rows) + 0.26 * legend_rows))
        curves, values = figure.subplots(1, 2, width_ratios=(1.15, 1))
        for axes in (curves, values):
            _plain(axes)
        _curves(curves, comparison, groups, styles)
        _values(values, comparison, groups, styles)
        if rows == 1:  # the right panel names it
            return figure
        handles = [_handle(styles[row.variant]) for row in comparison.rows]
        names = [_name(row.variant) for row in comparison.rows]
        legend = figure.legend(
            handles,
            [str(place) for place in range(rows)],
            loc="outside lower center",
            ncols=min(4, rows),
            frameon=False,
        )
        # Set afterwards: a legend leaves out labels that begin with "_".
        for text, name in zip(legend.get_texts(), names):
            text.set(text=name, color=INK)
    return figure


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, length=3, color=FAINT)
    axes.set_axisbelow(True)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=11, fontweight="bold", color=INK, pad=10)


def _name(text: str) -> str:
    """A name that fits, on one line, and whose dollar signs are no formulas."""
    text = " ".join(text.split())
    text = text if len(text) <= MAX_NAME else f"{text[: MAX_NAME - 1]}…"
    return text.replace("$", r"\$")


def _handle(line: LineStyle) -> Line2D:
    return Line2D([], [], color=line.colour, linestyle=line.style, marker=line.marker, markersize=5, linewidth=1.8)


def _label(comparison: Comparison, where: str, metric: str) -> str:
    better = "↑ higher is better" if comparison.higher_is_better else "↓ lower is better"
    unit = " in %" if comparison.unit(comparison.metric) == "%" else ""
    return f"{where} {_name(units.metric_name(metric))}{unit}\n{better}"


def _scale(axes: Axes, side: str, comparison: Comparison, numbers: Sequence[float]) -> None:
    """Percent, or logarithmic for a quantity such as perplexity that spans more than a factor of ten."""
    axis = getattr(axes, f"{side}axis")
    unit = comparison.unit(comparison.metric)
    if unit == "%":
        axis.set_major_formatter(FuncFormatter(lambda value, position: units.tick(value, unit)))
        lowest, highest = units.bounds(unit, comparison.higher_is_better)
        low, high = axis.get_view_interval()
        room = EDGE * (min(high, highest) - max(low, lowest))  # for a dot at the end
        axis.set_view_interval(max(low, lowest - room), min(high, highest + room), ignore=True)
    elif not comparison.higher_is_better and numbers and min(numbers) > 0 and max(numbers) / min(numbers) > LOG_RANGE:
        axes.set(**{f"{side}scale": "log"})
        if max(numbers) / min(numbers) < 1000:
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(lambda value, position: units.tick(value, unit)))


# ------------------------------------------------------------------------------------------------------------- curves


def _curves(axes: Axes, comparison: Comparison, groups: dict[str, list[Result]], styles: dict[str, LineStyle]) -> None:
    numbers: list[float] = []
    for row in reversed(comparison.rows):  # the best on top
        line, runs = styles[row.variant], groups[row.variant]
        lines = {run.seed: _points(run, comparison.learned) for run in runs}
        for run in runs:
            points = lines[run.seed]
            if points and len(runs) > 1:
                axes.plot(*zip(*points), color=line.colour, linewidth=0.8, alpha=0.35)
            if points and run.results.get("diverged"):
                axes.plot(*points[-1], color=line.colour, marker="x", markersize=7, linestyle="none")
            numbers += [value for _, value in points]
        # One diverged run must not bend the mean where it ends.
        whole = [lines[run.seed] for run in runs if not run.results.get("diverged")] or list(lines.values())
        mean = _mean([points for points in whole if points])
        if mean:
            axes.plot(
                *zip(*mean),
                color=line.colour,
                linestyle=line.style,
                linewidth=1.8,
                marker=line.marker,
                markersize=4,
                markevery=max(1, len(mean) // 8),
                label=_name(row.variant),
            )
    _scale(axes, "y", comparison, numbers)
    axes.grid(axis="y", color=FAINT, linewidth=0.5, alpha=0.6)
    axes.set_xlabel("training step")
    axes.set_ylabel(_label(comparison, "validation", comparison.learned))
    _title(axes, "During training")
    if not numbers:
        axes.set(xticks=[], yticks=[])
        _remark(axes, "no evaluation was logged")


def _points(run: Result, metric: str) -> list[tuple[int, float]]:
    points = [(step, values.get(metric)) for step, values in run.curve]
    return [(step, value) for step, value in points if value is not None and math.isfinite(value)]


def _mean(lines: Sequence[Sequence[tuple[int, float]]]) -> list[tuple[int, float]]:
    """The mean at steps that all lines have."""
    values = [dict(line) for line in lines]
    steps = sorted(set.intersection(*map(set, values))) if values else []
    return [(step, fmean(line[step] for line in values)) for step in steps]


# ------------------------------------------------------------------------------------------------------------- values


def _values(axes: Axes, comparison: Comparison, groups: dict[str, list[Result]], styles: dict[str, LineStyle]) -> None:
    metric, numbers = comparison.metric, []
    for place, row in enumerate(comparison.rows):
        line = styles[row.variant]
        seeds = [value for run in groups[row.variant] if math.isfinite(value := run.metric(metric))]
        numbers += seeds
        if not seeds:
            continue
        mean = row.mean[metric] if math.isfinite(row.mean[metric]) else fmean(seeds)
        if spread := row.spread[metric]:
            lowest, highest = units.bounds(comparison.unit(metric), comparison.higher_is_better)
            ends = [max(mean - spread, lowest), min(mean + spread, highest)]
            axes.plot(ends, [place, place], color=line.colour, linewidth=6, alpha=0.3)
        if len(seeds) > 1:
            axes.plot(seeds, [place + 0.27] * len(seeds), ".", color=line.colour, markersize=5, alpha=0.8)
        axes.plot(
            mean, place, line.marker, color=line.colour, markersize=8, markeredgecolor="white", gid=f"mean-{place}"
        )
    base = next((row for row in comparison.rows if row.variant == comparison.baseline), None)
    if base and len(comparison.rows) > 1 and math.isfinite(base.mean[metric]):
        axes.axvline(base.mean[metric], color=INK, linestyle="--", linewidth=0.9, alpha=0.6, zorder=0.5)
    axes.set_yticks(range(len(comparison.rows)), [_tick(row, comparison) for row in comparison.rows])
    axes.set_ylim(len(comparison.rows) - 0.4, -0.6)
    axes.xaxis.set_major_locator(MaxNLocator(MAX_TICKS, steps=[1, 2, 5, 10]))
    _scale(axes, "x", comparison, numbers)
    axes.grid(axis="x", color=FAINT, linewidth=0.5, alpha=0.6)
    axes.set_xlabel(_label(comparison, comparison.split, metric))
    several = any(len(row.seeds) > 1 for row in comparison.rows)
    _title(axes, "At the end: mean ± standard deviation, dots are seeds" if several else "At the end")
    if not numbers:
        axes.set_xticks([])
        _remark(axes, "every run diverged" if comparison.runs else "no run")


def _tick(row: Row, comparison: Comparison) -> str:
    is_base = row.variant == comparison.baseline and len(comparison.rows) > 1
    name = f"{_name(row.variant)} (baseline)" if is_base else _name(row.variant)
    return f"{name}\n{row.diverged} of {len(row.seeds)} diverged" if row.diverged else name


def _remark(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=INK, style="italic", alpha=0.7)
