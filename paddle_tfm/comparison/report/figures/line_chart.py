"""Lines with bands, a line a variant.

On a page a drawing is stretched to the width it gets, its strokes and its texts are not: lines have
`non-scaling-stroke`, a dot is a line of no length with round ends, and every text is HTML at a percentage of the
drawing. Colours are the page's (`var(--…)`), so that a figure is dark where the page is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len

from paddle_tfm import plotting, units
from paddle_tfm.comparison.runs.curves import Point
from paddle_tfm.language import _
from paddle_tfm.pages.axis import SIZE, Axis, at, dot, fit, short, xlabels
from paddle_tfm.pages.style import colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 6.2, 3.6  # inches: a column and a half of a paper
KEY_WIDTH = 0.6  # inches of a line in a legend, and between two
MAX_DOTS = 40  # of a line on the page; more would run together, and of so many a pointer finds the nearest


class Series(NamedTuple):
    """A line and the band around it; of one point, a dot with a bar. `number` decides its looks and which checkbox
    hides it. marked: with a dot at each point, where they are few."""

    number: int
    name: str
    points: Sequence[Point]
    marked: bool = True


@dataclass(frozen=True)
class LineChart:
    """Lines with bands.

    Args:
        x_title, y_title: with units. description: for a reader who cannot see it. name: of a value at y, as for
            `Axis.names`. mark: an x at which a dashed line stands.
    """

    series: Sequence[Series]
    x: Axis
    y: Axis
    x_title: str
    y_title: str
    description: str
    name: Callable[..., str]
    mark: float | None = None

    @classmethod
    def fitted(
        cls,
        series: Sequence[Series],
        titles: tuple[str, str],
        name: Callable[..., str] = short,
        bounds: tuple[float, float] = (-math.inf, math.inf),
        log: bool = False,
        x: Axis | None = None,
        mark: float | None = None,
    ) -> LineChart:
        """One whose axes hold all points: `titles` of x and y; `bounds` and `log` of y, as for `fit`; x from 0."""
        y = fit([value for item in series for point in item.points for value in (point.low, point.high)], bounds, log)
        x = x or fit([0.0, *(point.x for item in series for point in item.points)])
        ends = "; ".join(f"{item.name} ends at {name(item.points[-1].y)}" for item in reversed(series))
        y_title = _("{title}, logarithmic").format(title=titles[1]) if y.log else titles[1]
        return cls(series, x, y, titles[0], y_title, ends, name, mark)

    @classmethod
    def of_metric(
        cls, series: Sequence[Series], titles: tuple[str, str], unit: str, higher: bool, **more: Any
    ) -> LineChart:
        """One of the values of a metric of this unit, of which higher or lower is better."""
        better = _("{metric} (higher is better)") if higher else _("{metric} (lower is better)")
        y_title = better.format(metric=titles[1])
        return cls.fitted(
            series, (titles[0], y_title), partial(units.tick, unit=unit), units.bounds(unit, higher), **more
        )

    def html(self) -> str:
        """The chart on a page."""
        grid = "".join(f'<path class="grid" d="M0 {self._y(tick)}h{SIZE}"/>' for tick in self.y.ticks())
        if self.mark is not None:
            grid += f'<path class="base" d="M{self._x(self.mark)} 0v{SIZE}"/>'
        labels = "".join(
            f'<span style="bottom:{100 * self.y.share(tick):.2f}%">{escape(text)}</span>'
            for tick, text in zip(self.y.ticks(), self.y.names(self.name))
        )
        spoken = escape(f"{self.y_title} by {self.x_title}: {self.description}")
        frame = f'viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none" role="img" aria-label="{spoken}"'
        return (
            f'<figure class="chart"><figcaption>{escape(self.y_title)}</figcaption>'
            f'<div class="plot"><div class="ylabels" aria-hidden="true">{labels}</div>'
            f"<svg {frame}>{grid}{''.join(map(self._line, self.series))}</svg>{xlabels(self.x, short)}</div>"
            f'<p class="below">{escape(self.x_title)}</p></figure>'
        )

    def _x(self, value: float) -> str:
        return at(self.x.share(value))

    def _y(self, value: float) -> str:
        return at(1 - self.y.share(value))

    def _path(self, points: Sequence[tuple[float, float]]) -> str:
        return "M" + "L".join(f"{self._x(x)} {self._y(y)}" for x, y in points)

    def _line(self, item: Series) -> str:
        upper = [(point.x, point.high) for point in item.points]
        lower = [(point.x, point.low) for point in reversed(item.points)]
        band = dots = ""
        if any(point.high > point.low for point in item.points):
            band = f'<path class="band" d="{self._path([*upper, *lower])}Z"/>'
            if len(upper) == 1:
                (point,) = item.points
                ends = f"{self._y(point.high)}V{self._y(point.low)}"
                band = f'<path class="interval" d="M{self._x(point.x)} {ends}"/>'
        line = f'<path class="line" d="{self._path([(point.x, point.y) for point in item.points])}"/>'
        if item.marked:
            every = -(-len(item.points) // MAX_DOTS)
            kind = "dot" if every == 1 else "spot"
            for point in item.points[::-every]:
                text = f"{item.name}: {self.name(point.y)} at {self.x.called(point.x)}"
                d = dot(self.x.share(point.x), 1 - self.y.share(point.y))
                dots += f'<path class="{kind}" d="{d}"><title>{escape(text)}</title></path>'
        title = f"<title>{escape(item.name)}</title>"
        return f'<g class="s{item.number} {colour(item.number)}">{title}{band}{line}{dots}</g>'

    def figure(self) -> Figure:
        """The chart for a paper, with a legend."""
        texts = [self.x_title, self.y_title, *(item.name for item in self.series)]
        upright = max(map(cell_len, self.x.names(short))) * plotting.CELL if self.x.upright else 0
        with plotting.drawing(texts, (WIDTH, HEIGHT + upright)) as figure:
            by_name = self.draw(figure.subplots())
            plotting.heading(figure, self.y_title, WIDTH)
            if len(by_name) > 1:
                _legend(figure, by_name)
        return figure

    def draw(self, axes: Axes) -> dict[str, Any]:
        """Draw it within a figure. Returns of each name what stands for it in a legend."""
        plotting.plain(axes)
        # Dots and a line of one variant have one name.
        by_name = {plotting.label(item.name): _draw(axes, item) for item in self.series}
        plotting.scale(axes, "x", self.x, short)
        plotting.scale(axes, "y", self.y, self.name)
        axes.grid(axis="y", color=plotting.FAINT, linewidth=0.5, alpha=0.6)
        if self.mark is not None:
            axes.axvline(self.mark, **plotting.DASHED)
        axes.set_xlabel(plotting.one_line(self.x_title))
        return by_name


def _draw(axes: Axes, item: Series) -> Any:
    style = plotting.line_style(item.number)
    x, y, low, high = zip(*item.points)
    if len(x) == 1:
        errors = [[max(0.0, y[0] - low[0])], [max(0.0, high[0] - y[0])]]  # a mean of equal numbers may be rounded
        return axes.errorbar(x, y, errors, color=style.colour, marker=style.marker, capsize=3, linestyle="")
    if any(b > a for a, b in zip(low, high)):
        axes.fill_between(x, low, high, color=style.colour, alpha=0.16, linewidth=0)
    (line,) = axes.plot(x, y, color=style.colour, linewidth=1.6, linestyle=style.style)
    if item.marked:
        line.set(marker=style.marker, markersize=4, markevery=max(1, len(x) // 8))
    return line


def _legend(figure: Figure, by_name: dict[str, Any]) -> None:
    """The lines keep their room: a chart with more names is taller."""
    names = list(by_name)
    lines = max(name.count("\n") for name in names) + 1
    longest = max(cell_len(line) for name in names for line in name.split("\n"))
    columns = min(len(names), int(WIDTH / (plotting.CELL * longest + KEY_WIDTH)))
    figure.set_figheight(figure.get_figheight() + (-(-len(names) // columns) * lines - 1) * plotting.LINE)
    numbers = map(str, range(len(names)))
    legend = figure.legend(list(by_name.values()), numbers, loc="outside lower center", ncols=columns, frameon=False)
    for text, name in zip(legend.get_texts(), names):  # a legend leaves out names that begin with "_"
        text.set(text=name, color=plotting.INK)
