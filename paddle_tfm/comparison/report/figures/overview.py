"""The figure of a comparison: curves over training on the left, test values of every seed on the right."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from paddle_tfm import plotting, units
from paddle_tfm.comparison.report.figures.charts import plain, scale
from paddle_tfm.comparison.runs.finished import Result, grouped
from paddle_tfm.comparison.table import Comparison, Row
from paddle_tfm.pages.axis import fit
from paddle_tfm.pages.chart import short
from paddle_tfm.plotting import FAINT, INK, LineStyle

WIDTH = 11  # inches
ROW = 0.42  # inches of a variant


def draw(comparison: Comparison) -> Figure:
    """Left: the validation curve of the deciding metric, a line a variant. Right: its values on the test split, in rows
    that say which line is whose."""
    groups = grouped(comparison.runs)
    styles = {variant: plotting.line_style(number) for variant, number in comparison.numbers.items()}
    labels = [_label(row, comparison) for row in comparison.rows]
    height = 1.5 + sum(max(ROW, plotting.LINE * (label.count("\n") + 1.5)) for label in labels)
    characters = set("".join([comparison.metric, *labels]))
    with plotting.settings(plotting.fonts(characters)[0]):
        figure = plotting.new_figure((WIDTH, max(3.9, height)))
        left, right = figure.subfigures(1, 2, squeeze=False)[0]
        for panel, title, split, metric, draw_in in (
            (left, "During training", "validation", comparison.learned, partial(_curves, groups=groups)),
            (right, "At the end", comparison.split, comparison.metric, partial(_values, groups=groups, labels=labels)),
        ):
            plotting.heading(panel, f"{title}: {_what(comparison, split, metric)}", WIDTH / 2)
            axes = panel.subplots()
            plain(axes)
            draw_in(axes, comparison, styles=styles)
        _key(right, comparison)
    return figure


def _what(comparison: Comparison, split: str, metric: str) -> str:
    better = "↑ higher is better" if comparison.higher_is_better else "↓ lower is better"
    unit = " in %" if comparison.unit(metric) == "%" else ""
    return f"{split} {units.metric_name(metric)}{unit}, {better}"


def _label(row: Row, comparison: Comparison) -> str:
    """A variant at the side of the right panel."""
    notes = ["baseline"] if row.variant == comparison.baseline and len(comparison.rows) > 1 else []
    notes += [f"{row.diverged} of {len(row.seeds)} diverged"] if row.diverged else []
    return "\n".join([plotting.label(row.variant), *(f"({note})" for note in notes)])


def _scale(axes: Axes, side: str, comparison: Comparison, numbers: Sequence[float]) -> None:
    """Percent, or logarithmic for a quantity such as perplexity that spans more than a factor of ten."""
    unit, higher = comparison.unit(comparison.metric), comparison.higher_is_better
    along = fit(numbers, units.bounds(unit, higher), log=not unit and not higher)
    scale(axes, side, along, partial(units.tick, unit=unit))


# ------------------------------------------------------------------------------------------------------------- curves


def _curves(
    axes: Axes, comparison: Comparison, groups: Mapping[str, list[Result]], styles: Mapping[str, LineStyle]
) -> None:
    numbers: list[float] = []
    steps = [0.0]
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
            steps += [step for step, _ in points]
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
                label=row.variant,
            )
    axes.grid(axis="y", color=FAINT, linewidth=0.5, alpha=0.6)
    axes.set_xlabel("training step")
    if numbers:
        _scale(axes, "y", comparison, numbers)
        scale(axes, "x", fit(steps), short)
    else:
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


def _values(
    axes: Axes,
    comparison: Comparison,
    groups: Mapping[str, list[Result]],
    styles: Mapping[str, LineStyle],
    labels: Sequence[str],
) -> None:
    metric, numbers = comparison.metric, []
    lowest, highest = units.bounds(comparison.unit(metric), comparison.higher_is_better)
    for place, row in enumerate(comparison.rows):
        line = styles[row.variant]
        seeds = [value for run in groups[row.variant] if math.isfinite(value := run.metric(metric))]
        numbers += seeds
        if not seeds:
            continue
        mean = row.mean[metric] if math.isfinite(row.mean[metric]) else fmean(seeds)
        if spread := row.spread[metric]:
            ends = [max(mean - spread, lowest), min(mean + spread, highest)]
            numbers += [end for end in ends if end > 0 or min(seeds) <= 0]  # a logarithmic axis has no place for others
            axes.plot(ends, [place, place], color=line.colour, linewidth=6, alpha=0.3)
        if len(seeds) > 1:
            axes.plot(seeds, [place + 0.27] * len(seeds), ".", color=line.colour, markersize=5, alpha=0.8)
        axes.plot(
            mean, place, line.marker, color=line.colour, markersize=8, markeredgecolor="white", gid=f"mean-{place}"
        )
    if (base := _base_mean(comparison)) is not None:
        axes.axvline(base, color=INK, linestyle="--", linewidth=0.9, alpha=0.6, zorder=0.5)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(axis="x", color=FAINT, linewidth=0.5, alpha=0.6)
    if numbers:
        _scale(axes, "x", comparison, numbers)
    else:
        axes.set_xticks([])
        _remark(axes, "every run diverged" if comparison.runs else "no run")


def _base_mean(comparison: Comparison) -> float | None:
    """The baseline's mean, where others are compared with it."""
    rows = [row for row in comparison.rows if row.variant == comparison.baseline and len(comparison.rows) > 1]
    mean = rows[0].mean[comparison.metric] if rows else math.nan
    return mean if math.isfinite(mean) else None


def _key(panel: SubFigure, comparison: Comparison) -> None:
    """What the signs of the right panel are."""
    sign: Callable[..., Line2D] = partial(Line2D, [], [], color=INK)
    signs = {}
    if any(len(row.seeds) > 1 for row in comparison.rows):
        signs["mean ± standard deviation"] = sign(linewidth=6, alpha=0.3)
        signs["one seed"] = sign(marker=".", linestyle="")
    if _base_mean(comparison) is not None:
        signs["baseline’s mean"] = sign(linestyle="--", linewidth=0.9, alpha=0.6)
    if signs:
        panel.legend(
            list(signs.values()),
            list(signs),
            loc="outside lower right",
            ncols=len(signs),
            frameon=False,
            labelcolor=INK,
            fontsize=9,
        )


def _remark(axes: Axes, text: str) -> None:
    axes.set(xticks=[])
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=INK, style="italic", alpha=0.7)
