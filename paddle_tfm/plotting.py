"""What all pictures share: fonts that show their text, lines that everyone tells apart, and how they become bytes."""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import matplotlib
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, FigureBase
from matplotlib.ticker import NullLocator
from rich.cells import cell_len

from paddle_tfm.colours import COLOURS, colour
from paddle_tfm.pages.axis import Axis
from paddle_tfm.tabular import wrapped
from paddle_tfm.units import visible

if TYPE_CHECKING:
    from matplotlib.typing import LineStyleType

Picture = Literal["png", "svg", "pdf"]

STYLES: tuple[LineStyleType, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
CELL = 0.08  # inches of half a Chinese character, or of a Latin one, as wide as they come
LINE = 0.2  # inches from a line of text to the next
NAME_CELLS, NAME_LINES = 24, 3  # of a variant's name
# A page replaces these two by its own colours, light or dark.
INK, FAINT = "#24292f", "#c9d1d9"
DASHED: dict[str, Any] = {"color": INK, "linestyle": "--", "linewidth": 0.9, "alpha": 0.6, "zorder": 0.5}  # a line
FONT_ADVICE = (
    "For Chinese, Japanese and Korean install Noto Sans CJK (Debian, Ubuntu: apt install fonts-noto-cjk; Fedora: dnf "
    "install google-noto-sans-cjk-fonts), or copy its file to ~/.local/share/fonts; the next command uses it"
)
FIRST_FONT = "DejaVu Sans"  # comes with matplotlib
# Of several fonts that show as much, the first of these: simplified Chinese forms before Japanese and Korean ones.
PREFERRED_FONTS = (
    *("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Zen Hei", "PingFang SC"),
    *("Hiragino Sans GB", "Microsoft YaHei", "SimHei", "Arial Unicode MS"),
)


class LineStyle(NamedTuple):
    """How a variant is drawn, the same in every panel."""

    colour: str
    style: LineStyleType
    marker: str


def line_style(number: int) -> LineStyle:
    """The style of the `number`-th variant: 8 colours, then the same with another line and marker, 32 in all."""
    turn = number // len(COLOURS)
    marker = MARKERS[(number + 3 * turn) % len(MARKERS)]
    return LineStyle(colour(number), STYLES[turn % len(STYLES)], marker)


def fonts(characters: set[str]) -> tuple[list[str], set[str]]:
    """As few installed fonts as needed to show `characters`, and the characters that none of them has. Fonts that were
    installed after matplotlib made its list of them are added to it."""
    families, missing = _families(characters)
    if missing and _add_new_fonts():
        families, missing = _families(characters)
    return families, missing


@lru_cache(maxsize=1)
def _add_new_fonts() -> bool:
    """Whether this machine has fonts that matplotlib's list, a file in its cache, does not know; they are added for
    this process."""
    known = {font.fname for font in font_manager.fontManager.ttflist}
    added = False
    for path in sorted(set(font_manager.findSystemFonts()) - known):
        with suppress(Exception):  # of a font that matplotlib cannot read, whatever its reader raises
            font_manager.fontManager.addfont(path)
            added = True
    return added


def _families(characters: set[str]) -> tuple[list[str], set[str]]:
    files: dict[str, str] = {}
    for font in font_manager.fontManager.ttflist:
        if font.style == "normal" and not font.name.startswith("Last Resort"):  # that one has a box for everything
            files.setdefault(font.name, font.fname)
    ranks = {name: rank for rank, name in enumerate(PREFERRED_FONTS)}
    families, missing = [FIRST_FONT], _lacking(files[FIRST_FONT], characters)
    while missing:
        left = {name: _lacking(file, missing) for name, file in files.items()}
        best = min(left, key=lambda name: (len(left[name]), ranks.get(name, len(ranks)), name))
        if left[best] == missing:
            break
        families.append(best)
        missing = left[best]
    return families, missing


def _lacking(file: str, characters: set[str]) -> set[str]:
    try:
        charmap = font_manager.get_font(file).get_charmap()
    except (OSError, RuntimeError):  # FreeType cannot read it
        return characters
    return {character for character in characters if ord(character) not in charmap}


@contextmanager
def settings(families: Sequence[str] = (FIRST_FONT,), size: float = 10) -> Iterator[None]:
    """Fonts and sizes of our pictures, and no warning about characters that no font here has."""
    context = matplotlib.rc_context(
        {
            "font.family": list(families),
            "font.size": size,
            "svg.fonttype": "none",
            "pdf.fonttype": 42,  # TrueType: publishers refuse type 3
            "svg.hashsalt": "paddle-tfm",
            "axes.unicode_minus": True,
        }
    )
    logs = [logging.getLogger(name) for name in ("matplotlib.font_manager", "fontTools")]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL)  # nor about weights that a font lacks, and what of a font a PDF holds
    with warnings.catch_warnings(), context:
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        try:
            yield
        finally:
            for log, level in zip(logs, levels):
                log.setLevel(level)


def new_figure(size: tuple[float, float], layout: Literal["constrained"] | None = "constrained") -> Figure:
    """An empty figure of `size` (width, height) in inches, which pyplot knows nothing of."""
    figure = Figure(figsize=size, layout=layout)
    FigureCanvasAgg(figure)
    return figure


@contextmanager
def drawing(texts: Iterable[str], size: tuple[float, float]) -> Iterator[Figure]:
    """An empty figure of `size` in inches, in fonts that show these texts."""
    with settings(fonts(set("".join(texts)))[0]):
        yield new_figure(size)


def plain(axes: Axes) -> None:
    """Axes in the greys of all our figures, open above and on the right."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, length=3, color=FAINT, which="both")
    axes.set_axisbelow(True)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)


def scale(axes: Axes, side: str, along: Axis, name: Callable[..., str]) -> None:
    """The ends, the ticks and their names that the page has."""
    axis = getattr(axes, f"{side}axis")
    room = 0 if along.log else 0.02 * (along.high - along.low)
    axes.set(**{f"{side}scale": "log" if along.log else "linear", f"{side}lim": (along.low - room, along.high + room)})
    axis.set_ticks(along.ticks(), along.names(name), rotation=90 if along.upright else 0)
    axis.set_minor_locator(NullLocator())


def one_line(text: str) -> str:
    """Text on one line, in which no dollar sign begins a formula."""
    return " ".join(text.split()).replace("$", r"\$")


def label(name: str) -> str:
    """A name that fits beside axes and into a legend: of at most `NAME_LINES` lines."""
    lines = [""]
    for word in re.split("(?<=[ ,=/_+-])", one_line(name)):
        for part in [word] if cell_len(word) <= NAME_CELLS else word:
            if cell_len(lines[-1] + part) > NAME_CELLS:
                lines.append("")
            lines[-1] += part
    if len(lines) > NAME_LINES:
        lines = [*lines[: NAME_LINES - 1], lines[NAME_LINES - 1][:-1] + "…"]
    return "\n".join(lines)


def heading(figure: FigureBase, text: str, width: float) -> None:
    """A title over a figure, or a part of one, of so many inches: it begins at the left edge and breaks between words.
    One of axes, or along an axis, is cut off where it is longer than they are."""
    lines = wrapped(one_line(text), int(width / CELL))
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize="medium", color=INK)


def caption(figure: Figure, text: str) -> None:
    """Sentences below a figure, which `image` with `crop` keeps. What has its place by the layout stays where it is: a
    legend outside of axes would be laid out again, below the sentences."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for legend in figure.legends:
        corner = legend.get_window_extent().transformed(figure.transFigure.inverted())
        legend.set_bbox_to_anchor((0, 0, 1, 1), figure.transFigure)
        legend.set_loc((corner.x0, corner.y0))
    width = figure.get_figwidth()
    with settings(fonts(set(text))[0], 8):
        lines = wrapped(one_line(text), int(width / (0.8 * CELL)))
        figure.text(0.01, -0.02, "\n".join(lines), ha="left", va="top", color=INK)


METADATA: dict[Picture, tuple[str, ...]] = {  # what would differ by time or version
    "svg": ("Creator", "Date", "Format", "Type"),
    "pdf": ("Creator", "CreationDate", "Producer"),
    "png": ("Software",),
}


def page_figure(figure: Figure) -> str:
    """`figure` within an HTML page: its two greys become the page's, light or dark. A style sheet of its own, which
    would hold for the whole page, becomes a style of this drawing."""
    svg = image(figure, "svg").decode("utf-8")
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg[svg.index("<svg") :], count=1, flags=re.DOTALL)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = svg.replace(INK, "var(--ink)").replace(FAINT, "var(--line)")
    style = "max-width: 100%; height: auto; stroke-linejoin: round; stroke-linecap: butt"
    drawing = svg.replace("<svg", f'<svg role="img" style="{style}"', 1)
    return f"<figure>{drawing}</figure>"


def image(figure: Figure, kind: Picture = "png", dpi: int = 160, crop: bool = False) -> bytes:
    """`figure` as bytes, the same for the same figure; `crop`: as large as what is drawn, also beyond the figure's
    edges."""
    stream = io.BytesIO()
    metadata = dict.fromkeys(METADATA[kind])
    with settings():
        box = "tight" if crop else None
        figure.savefig(stream, format=kind, dpi=dpi, metadata=metadata, transparent=kind == "svg", bbox_inches=box)
    return visible(stream.getvalue().decode("utf-8")).encode("utf-8") if kind == "svg" else stream.getvalue()
