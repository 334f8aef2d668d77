"""The figure of a comparison: curves over training on the left, test values of every seed on the right."""

from __future__ import annotations

import io
import logging
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import NamedTuple

import matplotlib
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from paddle_tfm import units
from paddle_tfm.comparison.table import Comparison, Result, Row, grouped

# Okabe and Ito's colours (https://jfly.uni-koeln.de/color/), which colour-blind readers tell apart; black is grey and
# yellow is wine here, so that all eight show on white and on black.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A828C", "#A2386B")
STYLES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
# The page replaces these two by its own colours, light or dark.
INK, FAINT = "#24292f", "#c9d1d9"
FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Zen Hei", "PingFang SC")
FONTS += ("Hiragino Sans GB", "Microsoft YaHei", "SimHei", "Arial Unicode MS")
LONGEST = 26
LOG_RANGE = 10


class Look(NamedTuple):
    """How a variant is drawn, the same in both panels."""

    colour: str
    style: str | tuple
    marker: str


def look(number: int) -> Look:
    """The look of the `number`-th variant: 8 colours, then the same with another line and marker, 32 in all."""
    turn = number // len(COLOURS)
    return Look(COLOURS[number % len(COLOURS)], STYLES[turn % len(STYLES)], MARKERS[(number + 3 * turn) % len(MARKERS)])


def human(metric: str) -> str:
    """A metric's name in words."""
    return metric.replace("_", " ")


def split(comparison: Comparison) -> str:
    """The split that the final values are of."""
    return "test" if any(run.results["test"] for run in comparison.runs) else "validation"


def draw(comparison: Comparison) -> Figure:
    """Left: the validation curve of the deciding metric, a line a variant. Right: its values on the test split."""
    groups = grouped(comparison.runs)
    looks = {variant: look(number) for number, variant in enumerate(groups)}
    rows = len(comparison.rows)
    legend_rows = math.ceil(rows / 4) if rows > 1 else 0
    with _quiet():
        figure = Figure(figsize=(11, max(3.9, 1.4 + 0.32 * rows) + 0.26 * legend_rows), layout="constrained")
        FigureCanvasAgg(figure)
        curves, values = figure.subplots(1, 2, width_ratios=(1.15, 1))
        for axes in (curves, values):
            _plain(axes)
        _curves(curves, comparison, groups, looks)
        _values(values, comparison, groups, looks)
        if rows == 1:  # the right panel names it
            return figure
        handles = [_handle(looks[row.variant]) for row in comparison.rows]
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


def image(figure: Figure, kind: str) -> bytes:
    """`figure` as `png` or `svg`, the same bytes for the same figure."""
    stream = io.BytesIO()
    metadata = dict.fromkeys(("Creator", "Date", "Format", "Type")) if kind == "svg" else {"Software": None}
    with _quiet():
        figure.savefig(stream, format=kind, dpi=160, metadata=metadata, transparent=kind == "svg")
    return stream.getvalue()


@contextmanager
def _quiet() -> Iterator[None]:
    """Our settings, and no word about characters that no font here has."""
    known = {font.name for font in font_manager.fontManager.ttflist}
    settings = {
        "font.family": [font for font in FONTS if font in known] or ["sans-serif"],
        "font.size": 10,
        "svg.fonttype": "none",
        "svg.hashsalt": "paddle-tfm",
        "axes.unicode_minus": True,
    }
    log = logging.getLogger("matplotlib.font_manager")
    level = log.level
    log.setLevel(logging.CRITICAL)  # nor about weights that a font lacks
    with warnings.catch_warnings(), matplotlib.rc_context(settings):
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        try:
            yield
        finally:
            log.setLevel(level)


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
    text = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return text.replace("$", r"\$")


def _handle(way: Look) -> Line2D:
    return Line2D([], [], color=way.colour, linestyle=way.style, marker=way.marker, markersize=5, linewidth=1.8)


def _label(comparison: Comparison, where: str) -> str:
    better = "↑ higher is better" if comparison.higher_is_better else "↓ lower is better"
    unit = " in %" if comparison.unit(comparison.metric) == "%" else ""
    return f"{where} {_name(human(comparison.metric))}{unit}\n{better}"


def _scale(axes: Axes, which: str, comparison: Comparison, drawn: Sequence[float]) -> None:
    """Percent, or logarithmic for a quantity such as perplexity that spans more than a factor of ten."""
    axis = getattr(axes, f"{which}axis")
    unit = comparison.unit(comparison.metric)
    if unit == "%":
        axis.set_major_formatter(FuncFormatter(lambda value, place: units.tick(value, unit)))
    elif not comparison.higher_is_better and drawn and min(drawn) > 0 and max(drawn) / min(drawn) > LOG_RANGE:
        axes.set(**{f"{which}scale": "log"})
        if max(drawn) / min(drawn) < 1000:
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(lambda value, place: units.tick(value, unit)))


# ------------------------------------------------------------------------------------------------------------- curves


def _curves(axes: Axes, comparison: Comparison, groups: dict[str, list[Result]], looks: dict[str, Look]) -> None:
    drawn: list[float] = []
    for row in reversed(comparison.rows):  # the best on top
        way, runs = looks[row.variant], groups[row.variant]
        lines = {run.seed: _points(run, comparison.metric) for run in runs}
        for run in runs:
            points = lines[run.seed]
            if points and len(runs) > 1:
                axes.plot(*zip(*points), color=way.colour, linewidth=0.8, alpha=0.35)
            if points and run.results.get("diverged"):
                axes.plot(*points[-1], color=way.colour, marker="x", markersize=7, linestyle="none")
            drawn += [value for _, value in points]
        # One diverged run must not bend the mean where it ends.
        whole = [lines[run.seed] for run in runs if not run.results.get("diverged")] or list(lines.values())
        mean = _mean([points for points in whole if points])
        if mean:
            axes.plot(
                *zip(*mean),
                color=way.colour,
                linestyle=way.style,
                linewidth=1.8,
                marker=way.marker,
                markersize=4,
                markevery=max(1, len(mean) // 8),
                label=_name(row.variant),
            )
    _scale(axes, "y", comparison, drawn)
    axes.grid(axis="y", color=FAINT, linewidth=0.5, alpha=0.6)
    axes.set_xlabel("training step")
    axes.set_ylabel(_label(comparison, "validation"))
    _title(axes, "During training")
    if not drawn:
        axes.set(xticks=[], yticks=[])
        _remark(axes, "no evaluation was logged")


def _points(run: Result, metric: str) -> list[tuple[int, float]]:
    found = [(step, values.get(metric)) for step, values in run.curve]
    return [(step, value) for step, value in found if value is not None and math.isfinite(value)]


def _mean(lines: Sequence[Sequence[tuple[int, float]]]) -> list[tuple[int, float]]:
    """The mean at steps that all lines have."""
    found = [dict(line) for line in lines]
    steps = sorted(set.intersection(*map(set, found))) if found else []
    return [(step, fmean(line[step] for line in found)) for step in steps]


# ------------------------------------------------------------------------------------------------------------- values


def _values(axes: Axes, comparison: Comparison, groups: dict[str, list[Result]], looks: dict[str, Look]) -> None:
    metric, drawn = comparison.metric, []
    for place, row in enumerate(comparison.rows):
        way = looks[row.variant]
        found = [value for run in groups[row.variant] if math.isfinite(value := run.metric(metric))]
        drawn += found
        if not found:
            continue
        mean = row.mean[metric] if math.isfinite(row.mean[metric]) else fmean(found)
        if spread := row.spread[metric]:
            axes.plot([mean - spread, mean + spread], [place, place], color=way.colour, linewidth=6, alpha=0.3)
        if len(found) > 1:
            axes.plot(found, [place + 0.27] * len(found), ".", color=way.colour, markersize=5, alpha=0.8)
        axes.plot(mean, place, way.marker, color=way.colour, markersize=8, markeredgecolor="white", gid=f"mean-{place}")
    base = next((row for row in comparison.rows if row.variant == comparison.baseline), None)
    if base and len(comparison.rows) > 1 and math.isfinite(base.mean[metric]):
        axes.axvline(base.mean[metric], color=INK, linestyle="--", linewidth=0.9, alpha=0.6, zorder=0.5)
    axes.set_yticks(range(len(comparison.rows)), [_tick(row, comparison) for row in comparison.rows])
    axes.set_ylim(len(comparison.rows) - 0.4, -0.6)
    _scale(axes, "x", comparison, drawn)
    axes.grid(axis="x", color=FAINT, linewidth=0.5, alpha=0.6)
    axes.set_xlabel(_label(comparison, split(comparison)))
    _title(axes, "At the end, dots are seeds")
    if not drawn:
        axes.set_xticks([])
        _remark(axes, "every run diverged" if comparison.runs else "no run")


def _tick(row: Row, comparison: Comparison) -> str:
    is_base = row.variant == comparison.baseline and len(comparison.rows) > 1
    name = f"{_name(row.variant)} (baseline)" if is_base else _name(row.variant)
    return f"{name}\n{row.diverged} of {len(row.seeds)} diverged" if row.diverged else name


def _remark(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=INK, style="italic", alpha=0.7)
