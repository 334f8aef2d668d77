"""Alignments in a folder: as numbers, as pieces, as pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from paddle_tfm import plotting
from paddle_tfm.errors import UserError
from paddle_tfm.inference.align import Alignment

PIECE_INCHES = 0.28
MARGIN = (2.6, 1.9)  # inches beside and above the pieces: labels, titles, scale
MAX_INCHES = 40.0  # the pieces of longer sentences get smaller


class AlignmentFolder:
    """A folder of alignments, a line for each sentence: `alignments.txt` (source-target, from 0, as in Pharaoh: 0-1
    2-0), `source.pieces` and `target.pieces` with spaces between pieces (␣: white space within one), and `00001.png`, …
    of the first `pictures` sentences that have pieces, numbered by line.

    Args:
        warn: called once, with a sentence, if no font shows a piece.
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
        rows = [row._replace(source=_visible(row.source), target=_visible(row.target)) for row in alignments]
        self._append("alignments.txt", [[f"{i}-{j}" for i, j in row.pairs()] for row in rows])
        self._append("source.pieces", [row.source for row in rows])
        self._append("target.pieces", [row.target for row in rows])
        numbered = [(number, row) for number, row in enumerate(rows, self.lines + 1) if row.weights.size]
        self.lines += len(rows)
        if numbered := numbered[: self.pictures]:
            self.pictures -= len(numbered)
            self._draw(numbered)

    def _append(self, name: str, rows: Iterable[Sequence[str]]) -> None:
        with (self.folder / name).open("a", encoding="utf-8", newline="\n") as file:
            file.writelines(" ".join(row) + "\n" for row in rows)

    def _draw(self, numbered: Sequence[tuple[int, Alignment]]) -> None:
        pieces = {piece for _, row in numbered for piece in (*row.source, *row.target)}
        families, missing = plotting.fonts(set("".join(pieces)))
        if missing and not self.warned:
            self.warned = True
            examples = "".join(sorted(missing)[:5])
            self.warn(
                f"{self.folder}: no installed font shows {examples}; pictures name such pieces by their index. "
                f"{plotting.FONT_ADVICE}"
            )
        for number, row in numbered:
            (self.folder / f"{number:05}.png").write_bytes(draw(row, families, missing))


def _visible(pieces: Sequence[str]) -> tuple[str, ...]:
    return tuple("".join("␣" if character.isspace() else character for character in piece) for piece in pieces)


def draw(alignment: Alignment, families: Sequence[str], missing: set[str]) -> bytes:
    """A PNG: a row for each target piece, a column for each source piece, the darker the more attention, by the scale
    beside it. A piece with a
    `missing` character is named by its index, as [i]."""
    rows, columns = alignment.weights.shape
    width, height = (
        min(MAX_INCHES, margin + PIECE_INCHES * n) for margin, n in ((MARGIN[0], columns), (MARGIN[1], rows))
    )
    with plotting.settings(families, size=9):
        figure = plotting.new_figure((width, height))
        axes = figure.subplots()
        picture = axes.imshow(alignment.weights, cmap="Greys", vmin=0.0, vmax=1.0, aspect="auto")
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position("top")
        axes.set_xlabel("source")
        axes.set_ylabel("target")
        figure.colorbar(picture, ax=axes, label="attention weight", fraction=0.05, aspect=30)
        axes.set_xticks(range(columns), _labels(alignment.source, missing), rotation=90, parse_math=False)
        axes.set_yticks(range(rows), _labels(alignment.target, missing), parse_math=False)
        axes.tick_params(length=0)
        return plotting.image(figure, dpi=120)


def _labels(pieces: Sequence[str], missing: set[str]) -> list[str]:
    return [f"[{i}]" if missing & set(piece) else piece for i, piece in enumerate(pieces)]
