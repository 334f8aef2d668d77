"""Charts as inline SVG. A drawing is stretched to the width it gets, its strokes and its texts are not: lines have
`non-scaling-stroke`, a dot is a line of no length with round ends, and every text is HTML at a percentage of the
drawing. Colours are the page's (`var(--…)`), so that a figure is dark where the page is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

from paddle_tfm.colours import COLOURS
from paddle_tfm.pages.axis import Axis

SIZE = 1000  # of a drawing's own units, in both directions
MAX_DOTS = 40  # more would run together
NARROW = 20.0  # the width of a drawing on a phone, in sizes of the letters below it
LETTER, GAP = 0.6, 0.6  # the width of a letter, and of what keeps two names apart


class Point(NamedTuple):
    """The mean over runs, and the range of the runs."""

    x: float
    y: float
    low: float
    high: float


class Series(NamedTuple):
    """A line and the band around it. `number` decides its looks and which checkbox hides it. marked: with a dot at each
    point, where they are few."""

    number: int
    name: str
    points: Sequence[Point]
    marked: bool = True


def colour(number: int) -> str:
    """The classes of the `number`-th line: one of eight colours, then the same with other dashes."""
    return f"c{number % len(COLOURS)} dash{number // len(COLOURS) % 4}"


def path(points: Sequence[tuple[float, float]], x: Axis, y: Axis) -> str:
    """The `d` of a line through `points`."""
    steps = [f"{_at(x.share(a))} {_at(1 - y.share(b))}" for a, b in points]
    return "M" + "L".join(steps)


def dot(x: float, y: float) -> str:
    """The `d` of a dot at these shares of the drawing: a line of no length with round ends."""
    return f"M{_at(x)} {_at(y)}h0"


def _at(share: float) -> str:
    return f"{share * SIZE:.1f}".rstrip("0").rstrip(".")


def line_chart(
    series: Sequence[Series],
    x: Axis,
    y: Axis,
    texts: tuple[str, str, str],
    name: Callable[..., str],
    mark: float | None = None,
) -> str:
    """A figure of lines and bands.

    Args:
        texts: the caption, what the x axis counts, and what a reader who cannot see it is told. name: of a
            value at y, as for `Axis.names`. mark: an x at which a dashed line stands.
    """
    caption, below, description = texts
    grid = "".join(f'<path class="grid" d="M0 {_at(1 - y.share(tick))}h{SIZE}"/>' for tick in y.ticks())
    if mark is not None:
        grid += f'<path class="base" d="M{_at(x.share(mark))} 0v{SIZE}"/>'
    drawn = "".join(_series(item, x, y, name) for item in series)
    ylabels = "".join(
        f'<span style="bottom:{100 * y.share(tick):.2f}%">{escape(text)}</span>'
        for tick, text in zip(y.ticks(), y.names(name))
    )
    svg = (
        f'<svg viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none" role="img" aria-label="{escape(description)}">'
        f"{grid}{drawn}</svg>"
    )
    return (
        f'<figure class="chart"><figcaption>{escape(caption)}</figcaption>'
        f'<div class="plot"><div class="ylabels" aria-hidden="true">{ylabels}</div>{svg}{xlabels(x, short)}</div>'
        f'<p class="below">{escape(below)}</p></figure>'
    )


def xlabels(axis: Axis, name: Callable[..., str]) -> str:
    """The names of an axis' ticks, below a drawing; one at an end stands within it. Those of the class `spare` would
    run into others where the drawing is narrow: each second stays there, or third, …, counted from the last."""
    ticks = [(axis.share(tick), text) for tick, text in zip(axis.ticks(), axis.names(name))]
    boxes = []
    for share, text in ticks:
        width = LETTER * len(text)
        left = share * NARROW - width * {"first": 0.0, "": 0.5, "last": 1.0}[_side(share)]
        boxes.append((left, left + width + GAP))
    last = len(ticks) - 1
    each = next(
        (n for n in range(1, last + 1) if all(a[1] <= b[0] for a, b in pairwise(boxes[last % n :: n]))), last + 1
    )
    spans = ""
    for i, (share, text) in enumerate(ticks):
        kinds = " ".join(filter(None, [_side(share), "spare" if (last - i) % each else ""]))
        spans += f'<span class="{kinds}" style="left:{100 * share:.2f}%">{escape(text)}</span>'
    return f'<div class="xlabels" aria-hidden="true">{spans}</div>'


def _side(share: float) -> str:
    return "first" if share < 0.03 else "last" if share > 0.97 else ""


def _series(item: Series, x: Axis, y: Axis, name: Callable[..., str]) -> str:
    if not item.points:
        return ""
    upper = [(point.x, point.high) for point in item.points]
    lower = [(point.x, point.low) for point in reversed(item.points)]
    banded = any(point.high > point.low for point in item.points)
    band = f'<path class="band" d="{path([*upper, *lower], x, y)}Z"/>' if banded and len(upper) > 1 else ""
    if len(item.points) == 1 and banded:
        (point,) = item.points
        top, bottom = _at(1 - y.share(point.high)), _at(1 - y.share(point.low))
        band = f'<path class="interval" d="M{_at(x.share(point.x))} {top}V{bottom}"/>'
    line = f'<path class="line" d="{path([(point.x, point.y) for point in item.points], x, y)}"/>'
    dots = ""
    if item.marked and len(item.points) <= MAX_DOTS:
        for point in item.points:
            text = f"{item.name}: {name(point.y)} at {short(point.x)}"
            d = dot(x.share(point.x), 1 - y.share(point.y))
            dots += f'<path class="dot" d="{d}"><title>{escape(text)}</title></path>'
    return f'<g class="s{item.number} {colour(item.number)}">{band}{line}{dots}</g>'


def short(value: float, digits: int = 6) -> str:
    """A count as an axis names it: 500, 20k, 1.5M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            divisor = 1e3 if letter == "k" else size
            return f"{value / divisor:.{digits}g}{letter}"
    return f"{value:,.{digits}g}"
