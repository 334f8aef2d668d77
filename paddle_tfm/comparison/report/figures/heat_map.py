"""Maps of numbers as colours: several as one figure, and on a page a few kilobytes each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Literal
from unicodedata import east_asian_width

import numpy as np

from paddle_tfm import plotting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

Scale = Literal["signed", "share"]
COLUMNS = 3  # maps in a row
ROW_NAMES, COLUMN_NAMES = 6.5, 5.5  # in an inch of a map, at most; of more, some are left out
CELL, LETTER = 14, 6  # pixels of a cell on a page, and of a letter
LEVELS = 10  # shades there
LONGEST = 10  # letters of a name that are shown there


@dataclass(frozen=True)
class HeatMap:
    """One map, and the names of its rows and columns."""

    title: str
    values: np.ndarray  # [rows, columns]
    rows: Sequence[str]
    columns: Sequence[str]

    def html(self) -> str:
        """A map of shares from 0 to 1 on a page, the darker the more; neighbours of one shade are one shape. Who cannot
        see it hears its title and where each row is largest."""
        left, top = (LETTER * max(map(_letters, names), default=0) + 4 for names in (self.rows, self.columns))
        width, height = left + CELL * len(self.columns), top + CELL * len(self.rows)
        shares = np.nan_to_num(self.values)
        levels = np.clip(np.rint(shares * LEVELS), 0, LEVELS).astype(int)
        shapes = "".join(
            f'<path d="{_shape(levels == level, left, top)}" style="fill:var(--accent);fill-opacity:{level / LEVELS:g};'
            f'stroke:none"><title>about {level / LEVELS:g}</title></path>'
            for level in sorted(set(levels.ravel().tolist()) - {0})
        )
        frame = f'<path d="M{left} {top}H{width}V{height}H{left}Z" style="stroke:var(--line)"/>'
        names = "".join(
            f'<text x="{left - 3}" y="{top + CELL * i + 11}" text-anchor="end">{escape(_cut(name))}</text>'
            for i, name in enumerate(self.rows)
        )
        names += "".join(
            f'<text transform="translate({left + CELL * i + 11} {top - 3})rotate(-90)">{escape(_cut(name))}</text>'
            for i, name in enumerate(self.columns)
        )
        most = "; ".join(
            f"{_visible(row)} on {_visible(self.columns[int(share.argmax())])}" for row, share in zip(self.rows, shares)
        )
        spoken = escape(f"{self.title}. Most attention: {most}")
        return (
            f'<figure><figcaption>{escape(self.title)}</figcaption><svg viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-label="{spoken}" style="max-width:100%;height:auto;font-size:10px;'
            f'fill:var(--ink)">{shapes}{frame}{names}</svg></figure>'
        )


def _shape(cells: np.ndarray, left: int, top: int) -> str:
    """The `d` of all true cells [rows, columns]."""
    parts = []
    for i, row in enumerate(cells):
        place = 0
        for is_in, group in groupby(row.tolist()):
            length = len(list(group))
            if is_in:
                parts.append(f"M{left + CELL * place} {top + CELL * i}h{CELL * length}v{CELL}h-{CELL * length}z")
            place += length
    return "".join(parts)


def _visible(name: str) -> str:
    return "".join("␣" if character.isspace() else character for character in name)


def _cut(name: str) -> str:
    visible = _visible(name)
    return visible if len(visible) <= LONGEST else f"{visible[: LONGEST - 1]}…"


def _letters(name: str) -> int:
    """How wide a name is; a Chinese character counts as two letters."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in _cut(name))


@dataclass(frozen=True)
class HeatMaps:
    """Maps side by side.

    Args:
        titles: of the rows, of the columns, and of the scale, each with its unit. scale: `signed` has 0 in the middle,
            where anything is below it; `share` goes from 0 to 1. size: of one map in inches.
            columns: maps in a row. shared: one scale for all maps, and not one for each.
    """

    maps: Sequence[HeatMap]
    titles: tuple[str, str, str]
    scale: Scale = "signed"
    size: tuple[float, float] = (3.2, 2.4)
    columns: int = COLUMNS
    shared: bool = True

    def names(self) -> dict[str, int]:
        """None that a key must tell: each map has its title."""
        return {}

    def html(self) -> str:
        """The same figure on a page."""
        return plotting.page_figure(self.figure())

    def figure(self) -> Figure:
        """The maps for a paper."""
        texts = [*self.titles, *(text for item in self.maps for text in (item.title, *item.rows, *item.columns))]
        width = min(self.columns, len(self.maps))
        height = -(-len(self.maps) // width)
        inches = self.size[0] * width + 0.8
        with plotting.drawing(texts, (inches, self.size[1] * height), letters=8) as figure:
            grid = figure.subplots(height, width, squeeze=False)
            for item, axes in zip(self.maps, grid.ravel()):
                norm, colour = _colours(self.maps if self.shared else [item], self.scale)
                picture = axes.imshow(item.values, cmap=colour, norm=norm, aspect="auto", interpolation="none")
                _label(axes, item, self.size)
                axes.set_xlabel(plotting.one_line(self.titles[1]))
                if not self.shared:
                    _style(figure.colorbar(picture, ax=axes))
            for axes in grid.ravel()[len(self.maps) :]:
                axes.set_axis_off()
            for axes in grid[:, 0]:
                axes.set_ylabel(plotting.one_line(self.titles[0]))
            if self.shared:
                _style(figure.colorbar(picture, ax=grid.ravel().tolist()))
            plotting.heading(figure, self.titles[2], inches)
        return figure


def _colours(maps: Sequence[HeatMap], scale: Scale) -> tuple[Normalize, str]:
    """What is which colour: a norm and a map of matplotlib's."""
    from matplotlib import colors

    values = np.concatenate([item.values.ravel() for item in maps])
    known = values[np.isfinite(values)]
    most = float(np.abs(known).max()) if known.size and np.abs(known).max() > 0 else 1.0
    if scale == "share":
        return colors.Normalize(0, 1), "Blues"
    if known.size and known.min() >= 0:
        return colors.Normalize(0, most), "Blues"
    return colors.Normalize(-most, most), "RdBu_r"


def _style(bar: Colorbar) -> None:
    bar.ax.tick_params(colors=plotting.INK)


def _label(axes: Axes, item: HeatMap, size: tuple[float, float]) -> None:
    plotting.plain(axes)
    axes.set_title(plotting.label(item.title), color=plotting.INK, fontsize=8)
    sides = (
        (item.columns, axes.set_xticks, 90, COLUMN_NAMES * size[0]),
        (item.rows, axes.set_yticks, 0, ROW_NAMES * size[1]),
    )
    for names, at, turned, most in sides:
        every = math.ceil(len(names) / int(most)) or 1
        places = range(0, len(names), every)
        upright = max((len(names[i]) for i in places), default=0) <= 2
        at(places, [plotting.one_line(names[i]) for i in places], rotation=0 if upright else turned)
