"""Maps of numbers as colours: figures for a page and a paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from paddle_tfm import plotting
from paddle_tfm.comparison.charts import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 3  # maps in a row
MAX_TICKS = 24  # names of rows or columns; of more, some are left out


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
    scale: Literal["signed", "share", "log"] = "signed",
    size: tuple[float, float] = (3.2, 2.4),
    columns: int = COLUMNS,
) -> Figure:
    """Maps side by side under one scale.

    Args:
        titles: of the rows, of the columns, and of the scale, each with its unit. scale: `signed` has 0 in the middle,
            `share` goes from 0 to 1, `log` is logarithmic. size: of one map in inches. columns: maps in a row.
    """
    from matplotlib import colors

    texts = [*titles, *(text for item in maps for text in (item.title, *item.rows, *item.columns))]
    width = min(columns, len(maps))
    height = -(-len(maps) // width)
    values = np.concatenate([item.values.ravel() for item in maps])
    known = values[np.isfinite(values)]
    most = float(np.abs(known).max()) if known.size and np.abs(known).max() > 0 else 1.0
    least = float(known[known > 0].min()) if (known > 0).any() else most / 10
    norm, colour = {
        "signed": (colors.Normalize(-most, most), "RdBu_r"),
        "share": (colors.Normalize(0, 1), "Blues"),
        "log": (colors.LogNorm(min(least, 0.5 * most), most), "viridis"),
    }[scale]
    with plotting.settings(plotting.fonts({character for text in texts for character in text})[0], size=8):
        figure = plotting.new_figure((size[0] * width + 0.8, size[1] * height))
        grid = figure.subplots(height, width, squeeze=False)
        for item, axes in zip(maps, grid.ravel()):
            picture = axes.imshow(item.values, cmap=colour, norm=norm, aspect="auto", interpolation="none")
            _label(axes, item)
        for axes in grid.ravel()[len(maps) :]:
            axes.set_axis_off()
        for axes in grid[:, 0]:
            axes.set_ylabel(_text(titles[0]))
        for axes in grid.ravel()[max(len(maps) - width, 0) : len(maps)]:
            axes.set_xlabel(_text(titles[1]))
        bar = figure.colorbar(picture, ax=grid.ravel().tolist(), label=_text(titles[2]), shrink=min(1.0, 2 / height))
        bar.ax.tick_params(colors=plotting.INK)
        bar.ax.yaxis.label.set_color(plotting.INK)
    return figure


def _label(axes: Axes, item: HeatMap) -> None:
    plain(axes)
    axes.set_title(_text(item.title), color=plotting.INK, fontsize=8)
    for names, at, turned in ((item.rows, axes.set_yticks, 0), (item.columns, axes.set_xticks, 90)):
        every = -(-len(names) // MAX_TICKS) or 1
        places = range(0, len(names), every)
        upright = max((len(names[i]) for i in places), default=0) <= 2
        at(places, [_text(names[i]) for i in places], rotation=0 if upright else turned)


def _text(text: str) -> str:
    """Text on one line, in which no dollar sign begins a formula."""
    return " ".join(text.split()).replace("$", r"\$")
