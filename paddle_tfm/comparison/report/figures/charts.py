"""Figures of a report, each drawn twice from the same numbers: on the page, and by matplotlib for a paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from paddle_tfm import plotting
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.pages.axis import Axis
from paddle_tfm.pages.chart import SIZE, Series, colour, dot, line_chart, short, xlabels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 6.2, 3.6  # inches: a column and a half of a paper
KEY_WIDTH = 0.6  # inches of a line in a legend, and between two


@dataclass(frozen=True)
class LineChart:
    """Lines with bands, a line a variant; a variant with one point is a dot with a bar.

    Args:
        x_title, y_title: with units. description: for a reader who cannot see it. name: of a value at y. mark: an x at
            which a dashed line stands.
    """

    series: Sequence[Series]
    x: Axis
    y: Axis
    x_title: str
    y_title: str
    description: str
    name: Callable[..., str]
    mark: float | None = None

    def html(self) -> str:
        """The chart on a page."""
        texts = (self.y_title, self.x_title, f"{self.y_title} by {self.x_title}: {self.description}")
        return line_chart(self.series, self.x, self.y, texts, self.name, self.mark)

    def figure(self) -> Figure:
        """The chart for a paper."""
        texts = [self.x_title, self.y_title, *(item.name for item in self.series)]
        with plotting.settings(plotting.fonts({character for text in texts for character in text})[0]):
            figure = plotting.new_figure((WIDTH, HEIGHT))
            axes = figure.subplots()
            plain(axes)
            # Dots and a line of one variant have one name.
            by_name = {plotting.label(item.name): self._draw(axes, item) for item in self.series}
            scale(axes, "x", self.x, short)
            scale(axes, "y", self.y, self.name)
            axes.grid(axis="y", color=plotting.FAINT, linewidth=0.5, alpha=0.6)
            if self.mark is not None:
                axes.axvline(self.mark, color=plotting.INK, linestyle="--", linewidth=0.9, alpha=0.6, zorder=0.5)
            axes.set_xlabel(plotting.one_line(self.x_title))
            plotting.heading(figure, self.y_title, WIDTH)
            if len(by_name) > 1:
                handles, names = list(by_name.values()), list(by_name)
                lines = max(name.count("\n") for name in names) + 1
                longest = max(cell_len(line) for name in names for line in name.split("\n"))
                columns = min(len(names), int(WIDTH / (plotting.CELL * longest + KEY_WIDTH)))
                # The lines keep their room: a chart with more names is taller.
                figure.set_figheight(HEIGHT + (-(-len(names) // columns) * lines - 1) * plotting.LINE)
                legend = figure.legend(
                    handles, map(str, range(len(names))), loc="outside lower center", ncols=columns, frameon=False
                )
                for text, name in zip(legend.get_texts(), names):  # a legend leaves out names that begin with "_"
                    text.set(text=name, color=plotting.INK)
        return figure

    def _draw(self, axes: Axes, item: Series) -> Any:
        """Draw it; returns what stands for it in a legend."""
        style = plotting.line_style(item.number)
        x, y = [point.x for point in item.points], [point.y for point in item.points]
        low, high = [point.low for point in item.points], [point.high for point in item.points]
        if len(x) == 1:
            errors = [[y[0] - low[0]], [high[0] - y[0]]]
            return axes.errorbar(x, y, errors, color=style.colour, marker=style.marker, capsize=3, linestyle="")
        if any(b > a for a, b in zip(low, high)):
            axes.fill_between(x, low, high, color=style.colour, alpha=0.16, linewidth=0)
        every = max(1, len(x) // 8)
        (line,) = axes.plot(x, y, color=style.colour, linewidth=1.6, linestyle=style.style)
        if item.marked:
            line.set(marker=style.marker, markersize=4, markevery=every)
        return line


@dataclass(frozen=True)
class Bar:
    """A row of a forest plot: a variant, its difference, the interval's ends (NaN: none), and all of it in words."""

    number: int
    name: str
    mean: float
    low: float
    high: float
    text: str


@dataclass(frozen=True)
class ForestPlot:
    """Differences with their intervals, a row a variant, around a line at 0.

    Args:
        title: of the axis, with its unit. note: what the bars are, and which side is better. name: of a tick. within:
            the differences that are too small to matter, if the recipe says which.
    """

    bars: Sequence[Bar]
    axis: Axis
    title: str
    note: str
    name: Callable[..., str]
    within: float | None = None

    def html(self) -> str:
        """The chart on a page: a table whose middle column is drawn."""
        rows = "".join(self._row(bar) for bar in self.bars)
        head = "".join(f'<span role="columnheader">{text}</span>' for text in ("variant", "", "interval", ""))
        return (
            f'<div class="results" role="table" aria-label="{escape(self.title)}">'
            f'<div class="head" role="row">{head}</div>{rows}'
            f'<div class="scale" aria-hidden="true"><div>{xlabels(self.axis, self.name)}'
            f'<p class="note">{escape(self.title)}: {escape(self.note)}</p></div></div></div>'
        )

    def _row(self, bar: Bar) -> str:
        place = self.axis.share
        parts = [f'<path class="grid" d="M{place(tick) * SIZE:.1f} 0v{SIZE}"/>' for tick in self.axis.ticks()]
        parts.append(f'<path class="base" d="M{place(0.0) * SIZE:.1f} 0v{SIZE}"/>')
        if math.isfinite(bar.low) and math.isfinite(bar.high):
            left, right = place(bar.low) * SIZE, place(bar.high) * SIZE
            caps = "".join(
                f"M{at:.1f} 380v240"
                for at, value in ((left, bar.low), (right, bar.high))
                if self.axis.low <= value <= self.axis.high
            )
            parts.append(f'<path class="interval" d="M{left:.1f} 500H{right:.1f}{caps}"/>')
        parts.append(f'<path class="mean" d="{dot(place(bar.mean), 0.5)}"/>')
        swatch = f'<i class="swatch {colour(bar.number)}"></i>'
        frame = f'viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none" role="img" aria-label="{escape(bar.text)}"'
        return (
            f'<div role="row"><div role="rowheader" class="name">{swatch}<bdi>{escape(bar.name)}</bdi></div>'
            f'<div role="cell" class="score"></div><div role="cell" class="dots {colour(bar.number)}">'
            f"<svg {frame}>{''.join(parts)}</svg></div>"
            f'<div role="cell" class="against">{escape(bar.text)}</div></div>\n'
        )

    def figure(self) -> Figure:
        """The chart for a paper."""
        texts = [self.title, self.note, *(text for bar in self.bars for text in (bar.name, bar.text))]
        with plotting.settings(plotting.fonts({character for text in texts for character in text})[0]):
            figure = plotting.new_figure((WIDTH + 1, 1.1 + 0.5 * len(self.bars)))
            axes = figure.subplots()
            plain(axes)
            for place, bar in enumerate(self.bars):
                style = plotting.line_style(bar.number)
                if math.isfinite(bar.low) and math.isfinite(bar.high):
                    axes.plot(
                        [bar.low, bar.high], [place, place], "|-", color=style.colour, linewidth=1.8, markersize=9
                    )
                axes.plot(bar.mean, place, style.marker, color=style.colour, markersize=7, markeredgecolor="white")
            axes.axvline(0, color=plotting.INK, linestyle="--", linewidth=0.9, alpha=0.6, zorder=0.5)
            if self.within:
                axes.axvspan(-self.within, self.within, color=plotting.FAINT, alpha=0.35, linewidth=0, zorder=0.2)
            axes.set_yticks(range(len(self.bars)), [plotting.label(bar.name) for bar in self.bars])
            axes.set_ylim(len(self.bars) - 0.4, -0.6)
            right = axes.secondary_yaxis("right")
            right.set_yticks(range(len(self.bars)), [_broken(bar.text) for bar in self.bars])
            right.spines["right"].set_visible(False)
            right.tick_params(length=0, colors=plotting.INK, labelsize=8)
            scale(axes, "x", self.axis, self.name)
            plotting.heading(figure, f"{self.title}: {self.note}", WIDTH + 1)
        return figure


def key(facts: Facts) -> str:
    """Which colour is which variant, above charts that have no names."""
    return key_of({row.variant: facts.numbers[row.variant] for row in facts.comparison.rows})


def key_of(numbers: Mapping[str, int]) -> str:
    """Which colour is which name, by the numbers of the colours."""
    items = "".join(
        f'<li class="{colour(number)}"><i class="swatch"></i><bdi>{escape(name)}</bdi></li>'
        for name, number in numbers.items()
    )
    return f'<ul class="key">{items}</ul>' if len(numbers) > 1 else ""


def plain(axes: Axes) -> None:
    """Axes in the greys of all our figures, open above and on the right."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(plotting.FAINT)
    axes.tick_params(colors=plotting.INK, length=3, color=plotting.FAINT, which="both")
    axes.set_axisbelow(True)
    axes.xaxis.label.set_color(plotting.INK)
    axes.yaxis.label.set_color(plotting.INK)


def scale(axes: Axes, side: str, along: Axis, name: Callable[..., str]) -> None:
    """The ends, the ticks and their names that the page has."""
    from matplotlib.ticker import NullLocator

    axis = getattr(axes, f"{side}axis")
    room = 0 if along.log else 0.02 * (along.high - along.low)
    axes.set(**{f"{side}scale": "log" if along.log else "linear", f"{side}lim": (along.low - room, along.high + room)})
    axis.set_ticks(along.ticks(), along.names(name))
    axis.set_minor_locator(NullLocator())


def _broken(text: str) -> str:
    """A difference beside a bar: its verdict below it."""
    return plotting.one_line(text).replace("), ", ")\n")
