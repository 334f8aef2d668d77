"""Alignments in a folder: as numbers, as pieces, as pictures."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import matplotlib
from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from paddle_tfm.errors import UserError
from paddle_tfm.inference.align import Alignment

SIDE = 0.28  # inches a piece
LARGEST = 40.0  # inches: the pieces of longer sentences get smaller
FIRST = "DejaVu Sans"  # comes with matplotlib


class AlignmentFolder:
    """A folder of alignments, a line for each sentence: `alignments.txt` (source-target, from 0, as in Pharaoh: 0-1 2-0),
    `source.pieces` and `target.pieces` with spaces between pieces (␣: white space within one), and `00001.png`, … of
    the first `pictures` sentences that have pieces, numbered by line.

    Args:
        warn: told once, in a sentence, if no font shows a piece.
    Raises:
        UserError: there are files in the folder.
    """

    def __init__(self, folder: Path, pictures: int, warn: Callable[[str], None]):
        if folder.exists() and any(folder.iterdir()):
            raise UserError(f"{folder}: there are files in it already; name a new folder for the alignments")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.pictures, self.warn = folder, pictures, warn
        self.lines, self.warned = 0, False

    def add(self, alignments: Sequence[Alignment]) -> None:
        """The alignments of the next lines."""
        shown = [each._replace(source=_shown(each.source), target=_shown(each.target)) for each in alignments]
        self._append("alignments.txt", [[f"{i}-{j}" for i, j in each.pairs()] for each in shown])
        self._append("source.pieces", [each.source for each in shown])
        self._append("target.pieces", [each.target for each in shown])
        numbered = [(number, each) for number, each in enumerate(shown, self.lines + 1) if each.weights.size]
        self.lines += len(shown)
        if numbered := numbered[: self.pictures]:
            self.pictures -= len(numbered)
            self._draw(numbered)

    def _append(self, name: str, rows: Iterable[Sequence[str]]) -> None:
        with (self.folder / name).open("a", encoding="utf-8", newline="\n") as file:
            file.writelines(" ".join(row) + "\n" for row in rows)

    def _draw(self, numbered: Sequence[tuple[int, Alignment]]) -> None:
        pieces = {piece for _, each in numbered for piece in (*each.source, *each.target)}
        families, missing = fonts(set("".join(pieces)))
        if missing and not self.warned:
            self.warned = True
            some = "".join(sorted(missing)[:5])
            self.warn(f"{self.folder}: no installed font shows {some}; pictures name such pieces by their index")
        for number, each in numbered:
            (self.folder / f"{number:05}.png").write_bytes(draw(each, families, missing))


def _shown(pieces: Sequence[str]) -> tuple[str, ...]:
    return tuple("".join("␣" if character.isspace() else character for character in piece) for piece in pieces)


def fonts(characters: set[str]) -> tuple[list[str], set[str]]:
    """As few installed fonts as needed to show `characters`, and the characters that none of them has."""
    known: dict[str, str] = {}
    for font in font_manager.fontManager.ttflist:
        if font.style == "normal" and not font.name.startswith("Last Resort"):  # that one has a box for everything
            known.setdefault(font.name, font.fname)
    chosen, missing = [FIRST], _lacking(known[FIRST], characters)
    while missing:
        left = {name: _lacking(file, missing) for name, file in known.items()}
        best = min(sorted(left), key=lambda name: len(left[name]))
        if left[best] == missing:
            break
        chosen.append(best)
        missing = left[best]
    return chosen, missing


def _lacking(file: str, characters: set[str]) -> set[str]:
    try:
        has = font_manager.get_font(file).get_charmap()
    except (OSError, RuntimeError):  # FreeType cannot read it
        return characters
    return {character for character in characters if ord(character) not in has}


def draw(alignment: Alignment, families: Sequence[str], missing: set[str]) -> bytes:
    """A PNG: a row for each target piece, a column for each source piece, the darker the more attention. A piece with a
    `missing` character is named by its index, as [i]."""
    rows, columns = alignment.weights.shape
    size = [min(LARGEST, 1.6 + SIDE * number) for number in (columns, rows)]
    with matplotlib.rc_context({"font.family": list(families), "font.size": 9}):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        axes.imshow(alignment.weights, cmap="Greys", vmin=0.0, vmax=1.0, aspect="auto")
        axes.xaxis.tick_top()
        axes.set_xticks(range(columns), _labels(alignment.source, missing), rotation=90, parse_math=False)
        axes.set_yticks(range(rows), _labels(alignment.target, missing), parse_math=False)
        axes.tick_params(length=0)
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=120, metadata={"Software": None})
    return stream.getvalue()


def _labels(pieces: Sequence[str], missing: set[str]) -> list[str]:
    return [f"[{i}]" if missing & set(piece) else piece for i, piece in enumerate(pieces)]
