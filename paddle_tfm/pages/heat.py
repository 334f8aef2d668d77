"""Small maps of shares as inline SVG with the names of their rows and columns, a few kilobytes each."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby
from unicodedata import east_asian_width

import numpy as np

CELL, LETTER = 14, 6  # pixels of a cell, and of a letter
LEVELS = 10  # shades
LONGEST = 10  # letters of a name that are shown


def heat_map(shares: np.ndarray, rows: Sequence[str], columns: Sequence[str], title: str) -> str:
    """`shares` [rows, columns] from 0 to 1, the darker the more; neighbours of one shade are one shape.

    Args:
        title: what it is, above it; who cannot see it hears this and where each row is largest.
    """
    left, top = (LETTER * max(map(_letters, names), default=0) + 4 for names in (rows, columns))
    width, height = left + CELL * len(columns), top + CELL * len(rows)
    levels = np.clip(np.rint(np.nan_to_num(shares) * LEVELS), 0, LEVELS).astype(int)
    shapes = "".join(
        f'<path d="{_shape(levels == level, left, top)}" style="fill:var(--accent);fill-opacity:{level / LEVELS:g};'
        f'stroke:none"><title>about {level / LEVELS:g}</title></path>'
        for level in sorted(set(levels.ravel().tolist()) - {0})
    )
    frame = f'<path d="M{left} {top}H{width}V{height}H{left}Z" style="stroke:var(--line)"/>'
    names = "".join(
        f'<text x="{left - 3}" y="{top + CELL * i + 11}" text-anchor="end">{_shown(name)}</text>'
        for i, name in enumerate(rows)
    )
    names += "".join(
        f'<text transform="translate({left + CELL * i + 11} {top - 3})rotate(-90)">{_shown(name)}</text>'
        for i, name in enumerate(columns)
    )
    heard = [_visible(name) for name in columns]
    most = "; ".join(
        f"{_visible(row)} on {heard[int(share.argmax())]}" for row, share in zip(rows, np.nan_to_num(shares))
    )
    spoken = escape(f"{title}. Most attention: {most}")
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {width} {height}" width="{width}" '
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


def _shown(name: str) -> str:
    return escape(_cut(name))


def _letters(name: str) -> int:
    """How wide a name is; a Chinese character counts as two letters."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in _cut(name))
