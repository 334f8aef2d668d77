"""Maps of numbers as colours: figures for a page and a paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from paddle_tfm import plotting
from paddle_tfm.comparison.report.figures.charts import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

Scale = Literal["signed", "share", "log"]
COLUMNS = 3  # maps in a row
ROW_NAMES, COLUMN_NAMES = 6.5, 5.5  # in an inch of a map, at most; of more, some are left out


@dataclass(frozen=True)
class HeatMap:
    """One map, and the names of its rows and columns."""

    title: str
    values: np.ndarray  # [rows, columns]
    rows: Sequence[str]
    columns: Sequence[str]


def heat_figure(
    maps: Sequence[HeatMap],
    titles: tuple[str, str, str],
    scale: Scale = "signed",
    size: tuple[float, float] = (3.2, 2.4),
    columns: int = COLUMNS,
    shared: bool = True,
) -> Figure:
    """Maps side by side.

    Args:
        titles: of the rows, of the columns, and of the scale, each with its unit. scale: `signed` has 0 in the middle,
            where anything is below it; `share` goes from 0 to 1, `log` is logarithmic. size: of one map in inches.
            columns: maps in a row. shared: one scale for all maps, and not one for each.
    """
    texts = [*titles, *(text for item in maps for text in (item.title, *item.rows, *item.columns))]
    width = min(columns, len(maps))
    height = -(-len(maps) // width)
    with plotting.settings(plotting.fonts({character for text in texts for character in text})[0], size=8):
        figure = plotting.new_figure((size[0] * width + 0.8, size[1] * height))
        grid = figure.subplots(height, width, squeeze=False)
        for item, axes in zip(maps, grid.ravel()):
            norm, colour = _colours([each.values for each in maps] if shared else [item.values], scale)
            picture = axes.imshow(item.values, cmap=colour, norm=norm, aspect="auto", interpolation="none")
            _label(axes, item, size)
            axes.set_xlabel(plotting.one_line(titles[1]))
            if not shared:
                _style(figure.colorbar(picture, ax=axes))
        for axes in grid.ravel()[len(maps) :]:
            axes.set_axis_off()
        for axes in grid[:, 0]:
            axes.set_ylabel(plotting.one_line(titles[0]))
        if shared:
            _style(figure.colorbar(picture, ax=grid.ravel().tolist()))
        plotting.heading(figure, titles[2], size[0] * width + 0.8)
    return figure


def _colours(arrays: Sequence[np.ndarray], scale: Scale) -> tuple[Normalize, str]:
    """What is which colour: a norm and a map of matplotlib's."""
    from matplotlib import colors

    values = np.concatenate([array.ravel() for array in arrays])
    known = values[np.isfinite(values)]
    most = float(np.abs(known).max()) if known.size and np.abs(known).max() > 0 else 1.0
    if scale == "signed" and known.size and known.min() >= 0:
        return colors.Normalize(0, most), "Blues"
    if scale == "signed":
        return colors.Normalize(-most, most), "RdBu_r"
    if scale == "share":
        return colors.Normalize(0, 1), "Blues"
    least = float(known[known > 0].min()) if (known > 0).any() else most
    return colors.LogNorm(min(least, 0.5 * most), most), "viridis"


def _style(bar: Colorbar) -> None:
    bar.ax.tick_params(colors=plotting.INK)


def _label(axes: Axes, item: HeatMap, size: tuple[float, float]) -> None:
    plain(axes)
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
