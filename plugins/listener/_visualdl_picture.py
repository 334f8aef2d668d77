"""Maps of numbers as grey images with titles, ticks and a scale: 1 to 3 ms each, where matplotlib needs 150."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

CELL, GAP = 8, 3  # pixels of a number, and of the line between maps
NAMED_CELL, LONGEST = 24, 14  # pixels of a number beside names, and letters of a name
LEFT, TOP = 58, 62  # pixels before the first number: titles and ticks
TICK_EVERY = 10  # rows or columns
BAR_WIDTH, BAR_HEIGHT, BAR_MARGIN, BAR_LABELS = 16, 120, 18, 84  # pixels of the scale; the least height
EDGE = 12  # pixels of white below and at the right
FONT_SIZE = 14
FONTS = ("NotoSansCJK-Regular.ttc", "wqy-zenhei.ttc", "PingFang.ttc", "msyh.ttc", "DejaVuSans.ttf")
WHITE, BLACK = 255, 0


class Axes(NamedTuple):
    """What rows and columns are, what the numbers are, and which of them are black and white. `row_names`,
    `column_names`: of each row and column; without them every tenth has its number."""

    rows: str
    columns: str
    scale: str
    black: float
    white: float
    row_names: Sequence[str] = ()
    column_names: Sequence[str] = ()


def draw(maps: np.ndarray, axes: Axes) -> np.ndarray:
    """Maps [N, height, width] next to each other with black lines between, several numbered as heads; what is no number
    stays white: uint8 [pixels, pixels]. The first number stands at the pixel that `corner` says."""
    top, left = corner(axes)
    cell = NAMED_CELL if axes.row_names else CELL
    cells = _side_by_side(maps, axes, cell)
    height, width = cells.shape
    block = maps.shape[2] * cell
    heads = [f"head {number}" for number in range(len(maps))] if len(maps) > 1 else []
    columns = axes.columns
    if heads and max(map(_width, heads)) >= block:  # too narrow for a name above each
        columns, heads = f"{columns}, heads 0 to {len(maps) - 1}", []
    bar_height = max(height, BAR_HEIGHT)
    right = left + max(width, _width(columns)) + BAR_MARGIN
    size = right + max(BAR_WIDTH + BAR_LABELS, _width(axes.scale)) + EDGE, top + bar_height + EDGE
    image = Image.new("L", size, WHITE)
    pen = ImageDraw.Draw(image)
    pen.rectangle((left - 1, top - 1, left + width, top + height), outline=BLACK)
    image.paste(Image.fromarray(cells), (left, top))
    _write(pen, (left, 4), columns, "la")
    _write_upwards(image, 4, top, axes.rows)
    row_names = axes.row_names or [str(row) if row % TICK_EVERY == 0 else "" for row in range(maps.shape[1])]
    for row, name in enumerate(row_names):
        _write(pen, (left - 6, top + row * cell + cell // 2), _shown(name), "rm")
    for number, start in enumerate(range(left, left + width, block + GAP)):
        _write(pen, (start, 23), heads[number] if heads else "", "la")
        for column, name in enumerate(axes.column_names):
            x = start + column * cell + (cell - FONT_SIZE - 6) // 2
            _write_upwards(image, x, top - 6 - _width(_shown(name)), _shown(name))
        for column in range(0, 0 if axes.column_names else maps.shape[2], TICK_EVERY):
            _write(pen, (start + column * cell + cell // 2, top - 5), str(column), "ms")
    _draw_scale(image, pen, (right, top), bar_height, axes)
    return np.asarray(image)


def corner(axes: Axes) -> tuple[int, int]:
    """Pixels before the first number, above and on the left: titles and ticks, or names."""
    longest = [max(map(_width, map(_shown, names)), default=0) for names in (axes.column_names, axes.row_names)]
    return max(TOP, 32 + longest[0]), max(LEFT, 42 + longest[1])


def _shown(name: str) -> str:
    visible = "".join("␣" if character.isspace() else character for character in name)
    return visible if len(visible) <= LONGEST else f"{visible[: LONGEST - 1]}…"


def _side_by_side(maps: np.ndarray, axes: Axes, cell: int) -> np.ndarray:
    share = (maps - axes.black) / ((axes.white - axes.black) or 1.0)
    share = np.where(np.isnan(share), 1.0, share)  # what is no number is left white
    large = (WHITE * share.clip(0, 1)).round().astype(np.uint8).repeat(cell, 1).repeat(cell, 2)
    gap = np.full((large.shape[1], GAP), BLACK, np.uint8)
    return np.concatenate([part for one in large for part in (one, gap)][:-1], 1)


def _draw_scale(image: Image.Image, pen: ImageDraw.ImageDraw, corner: tuple[int, int], height: int, axes: Axes) -> None:
    """From the largest number above to the smallest below."""
    x, y = corner
    low, high = sorted((axes.black, axes.white))
    shades = np.linspace(WHITE, BLACK, height) if axes.white >= axes.black else np.linspace(BLACK, WHITE, height)
    bar = shades.round().astype(np.uint8)[:, None].repeat(BAR_WIDTH, 1)
    pen.rectangle((x - 1, y - 1, x + BAR_WIDTH, y + height), outline=BLACK)
    image.paste(Image.fromarray(bar), (x, y))
    _write(pen, (x, 4), axes.scale, "la")
    for place, value in ((0.0, high), (0.5, (low + high) / 2), (1.0, low)):
        _write(pen, (x + BAR_WIDTH + 6, y + round(place * (height - 1))), f"{value:.3g}", "lm")


@lru_cache(maxsize=1)
def _font() -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    """One with Chinese, where there is one: pieces are in any language."""
    for name in FONTS:
        with suppress(OSError):
            return ImageFont.truetype(name, FONT_SIZE)
    return ImageFont.load_default(FONT_SIZE)


def _width(text: str) -> int:
    return int(np.ceil(_font().getlength(text)))


def _write(pen: ImageDraw.ImageDraw, place: tuple[int, int], text: str, anchor: str) -> None:
    pen.text(place, text, fill=BLACK, font=_font(), anchor=anchor)


def _write_upwards(image: Image.Image, x: int, y: int, text: str) -> None:
    """`text` from below to above, its end at (x, y)."""
    line = Image.new("L", (_width(text), FONT_SIZE + 6), WHITE)
    _write(ImageDraw.Draw(line), (0, 0), text, "la")
    image.paste(line.rotate(90, expand=True), (x, y))
