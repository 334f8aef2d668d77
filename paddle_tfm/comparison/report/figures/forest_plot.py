"""Values with their intervals, a row a variant: on a page a table whose middle column is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from paddle_tfm import plotting
from paddle_tfm.pages.axis import SIZE, Axis, at, dot, xlabels
from paddle_tfm.pages.document import named
from paddle_tfm.pages.style import colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW = 0.5  # inches of a figure
HEIGHT = 0.3  # of the mean, above its interval


@dataclass(frozen=True)
class Bar:
    """A row.

    Args:
        mean: of the variant. low, high: the ends of its interval (NaN: none). text: all of it in words. remark: beside
            the name. score: the value in words, and its spread. values: single ones, each with what it is. cell: the
            last column on a page (HTML).
    """

    number: int
    name: str
    mean: float
    low: float
    high: float
    text: str
    remark: str
    score: tuple[str, str]
    values: Sequence[tuple[float, str]]
    cell: str

    @property
    def has_interval(self) -> bool:
        """Whether it has an interval."""
        return math.isfinite(self.low) and math.isfinite(self.high)


@dataclass(frozen=True)
class ForestPlot:
    """Values with their intervals, a row a variant, around a line.

    Args:
        title: of the axis, with its unit. note: what the bars are, and which side is better. name: of a tick. base:
            where the line is, NaN for none. heads: of the columns on the page.
    """

    bars: Sequence[Bar]
    axis: Axis
    title: str
    note: str
    name: Callable[..., str]
    base: float
    heads: Sequence[str]

    def html(self) -> str:
        """The chart on a page."""
        head = "".join(f'<span role="columnheader"><bdi>{escape(text)}</bdi></span>' for text in self.heads)
        return (
            f'<div class="results" role="table" aria-label="{escape(self.title)}">'
            f'<div class="head" role="row">{head}</div>{"".join(map(self._row, self.bars))}'
            f'<div class="scale" aria-hidden="true"><div>{xlabels(self.axis, self.name)}'
            f'<p class="note">{escape(self.title)}: {escape(self.note)}</p></div></div></div>'
        )

    def _row(self, bar: Bar) -> str:
        remark = f"<small>{escape(bar.remark)}</small>" if bar.remark else ""
        score, spread = map(escape, bar.score)
        return (
            f'<div role="row"><div role="rowheader" class="name">{named(bar.number, bar.name)}{remark}</div>'
            f'<div role="cell" class="score">{score}{f" <small>± {spread}</small>" if spread else ""}</div>'
            f'<div role="cell" class="dots {colour(bar.number)}">{self._drawing(bar)}</div>'
            f'<div role="cell" class="against">{bar.cell}</div></div>\n'
        )

    def _drawing(self, bar: Bar) -> str:
        def x(value: float) -> str:
            return at(self.axis.share(value))

        spoken = escape(f"{bar.name}: {bar.text}")
        parts = [f'<path class="grid" d="M{x(tick)} 0v{SIZE}"/>' for tick in self.axis.ticks()]
        parts += [f'<path class="base" d="M{x(self.base)} 0v{SIZE}"/>'] if math.isfinite(self.base) else []
        if bar.has_interval:
            shown = [end for end in (bar.low, bar.high) if self.axis.low - 1e-9 <= end <= self.axis.high + 1e-9]
            caps = "".join(f"M{x(end)} {at(1 - HEIGHT - 0.1)}v200" for end in shown)
            d = f"M{x(bar.low)} {at(1 - HEIGHT)}H{x(bar.high)}{caps}"
            parts.append(f'<path class="interval" d="{d}"><title>{spoken}</title></path>')
        for value, text in bar.values:
            d = dot(self.axis.share(value), HEIGHT)
            parts.append(f'<path class="seed" d="{d}"><title>{escape(text)}</title></path>')
        if math.isfinite(bar.mean):
            d = dot(self.axis.share(bar.mean), HEIGHT)
            parts.append(f'<path class="mean" d="{d}"><title>{spoken}</title></path>')
        frame = f'viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none" role="img" aria-label="{spoken}"'
        domain = f'data-from="{self.axis.low!r}" data-to="{self.axis.high!r}"'
        return f"<svg {frame} {domain}>{''.join(parts)}</svg>"

    def draw(self, axes: Axes) -> None:
        """Draw it within a figure: the names of the variants on the left."""
        plotting.plain(axes)
        for place, bar in enumerate(self.bars):
            style = plotting.line_style(bar.number)
            if bar.has_interval:
                shown = [min(max(end, self.axis.low), self.axis.high) for end in (bar.low, bar.high)]
                axes.plot(shown, [place + 0.2] * 2, "|-", color=style.colour, linewidth=1.8, markersize=9)
            seeds = [value for value, _ in bar.values]
            axes.plot(seeds, [place - 0.2] * len(seeds), ".", color=style.colour, markersize=6, alpha=0.6)
            axes.plot(bar.mean, place - 0.2, style.marker, color=style.colour, markersize=7, markeredgecolor="white")
        if math.isfinite(self.base):
            axes.axvline(self.base, **plotting.DASHED)
        names = [f"{plotting.label(bar.name)}{bar.remark and f'{chr(10)}({bar.remark})'}" for bar in self.bars]
        axes.set_yticks(range(len(self.bars)), names)
        axes.set_ylim(len(self.bars) - 0.4, -0.6)
        plotting.scale(axes, "x", self.axis, self.name)
