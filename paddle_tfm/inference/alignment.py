"""Alignments: the cross-attention weights between a source and an output, from one pass with teacher forcing; and a
folder of them, as numbers, as pieces, as pictures."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from paddle_tfm import plotting
from paddle_tfm.data.batches import Batch, in_order
from paddle_tfm.data.codec import Codec
from paddle_tfm.data.vocabulary import EOS
from paddle_tfm.errors import UserError
from paddle_tfm.inference.translate import Translation
from paddle_tfm.language import _
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Example, Tap

PICTURES = 20  # of the first sentences
PIECE_INCHES = 0.28
MAX_INCHES = 40.0  # the pieces of longer sentences get smaller
LABEL_POINTS = 9.0
UPRIGHT = 4  # half-widths of the longest source piece that is not turned
SCALE_PIECES = (7, 12)  # how high the scale is at least and at most


class Alignment(NamedTuple):
    """Pieces of both sides and weights float32 [T, S]: the attention weight of target piece j on source piece i,
    averaged over heads. The end tokens are left out, so that a row sums to 1 or less."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: np.ndarray

    def pairs(self) -> list[tuple[int, int]]:
        """(i, j) for each target piece j: i is the source piece with its largest weight."""
        return [(int(row.argmax()), j) for j, row in enumerate(self.weights)]


def align(
    model: Transformer,
    codec: Codec,
    texts: Sequence[str],
    outputs: Sequence[Translation],
    layer: int | None = None,
    max_tokens: int = 4096,
) -> list[Alignment]:
    """The alignment of each text with its output: the cross-attention of a decoder layer (0: the lowest; None: the
    last) under teacher forcing with that output.

    Raises:
        UserError: there is no such layer, or its attention has no weights to show.
    """
    decoder = model.decoder
    if decoder is None or model.encoder is None:
        raise UserError(_("an alignment is cross-attention, for which a model must have an encoder and a decoder"))
    layers = len(decoder.layers)
    layer = layers - 1 if layer is None else layer
    if not 0 <= layer < layers:
        sentence = _("attention layer {layer}: the decoder has the layers 0 to {last}")
        raise UserError(sentence.format(layer=layer, last=layers - 1))
    over_memory = decoder.layers[layer].over_memory
    sources = [tuple(codec.source.tokenize(text)) for text in texts]
    weights = [np.zeros((len(out.ids), len(source)), np.float32) for source, out in zip(sources, outputs)]
    nonempty = [i for i, matrix in enumerate(weights) if matrix.size]
    examples = [codec.encode(Example(texts[i], ""))._replace(target=[*outputs[i].ids, EOS]) for i in nonempty]
    for batch in in_order(examples, max_tokens):
        batch_weights = _cross_attention(model, batch.tensors(), f"decoder.{layer}.{over_memory}.attention")
        if batch_weights is None:
            sentence = _("attention layer {layer}: the cross-attention of this model has no weights to show ({name})")
            raise UserError(
                sentence.format(layer=layer, name=type(decoder.layers[layer].branches()[over_memory]).__name__)
            )
        for i, padded in zip(batch.index, batch_weights):
            matrix = weights[nonempty[i]]
            matrix[:] = padded[: matrix.shape[0], : matrix.shape[1]]
    return [Alignment(source, out.pieces, matrix) for source, out, matrix in zip(sources, outputs, weights)]


def _cross_attention(model: Transformer, batch: Batch, name: str) -> np.ndarray | None:
    """The weights of this name, averaged over heads: [B, T, S], or [B, T, S + T] of an attention to both texts. None
    where none are recorded."""
    # Only this layer's are recorded: those of all layers together would fill the memory.
    tap = Tap(recording=True, only=frozenset({name}))
    with model.evaluated():
        model(batch, tap)
    if not tap.recorded:
        return None
    ((_, by_head),) = tap.recorded  # [B, H, T, S]
    return by_head.astype("float32").mean(1).numpy()


class AlignmentFolder:
    """A folder of alignments, a line for each sentence: `alignments.txt` (source-target, from 0, as in Pharaoh: 0-1
    2-0), `source.pieces` and `target.pieces` with spaces between pieces (␣: white space within one), and `00001.png`, …
    of the first `PICTURES` sentences that have pieces, numbered by line.

    Args:
        warn: called once, with a sentence, if no font shows a piece.
    Raises:
        UserError: there are files in the folder.
    """

    def __init__(self, folder: Path, warn: Callable[[str], None]):
        if folder.exists() and any(folder.iterdir()):
            text = _("{folder}: there are files in it already; name a new folder for the alignments")
            raise UserError(text.format(folder=folder))
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.pictures, self.warn = folder, PICTURES, warn
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
    beside it, which is the same for all pictures. A piece with a `missing` character is named by its index, as [i]."""
    rows, columns = alignment.weights.shape
    inches = min(PIECE_INCHES, MAX_INCHES / max(rows, columns))
    sources, targets = _labels(alignment.source, missing), _labels(alignment.target, missing)
    upright = max(map(_half_widths, sources)) <= UPRIGHT
    with plotting.settings(families, size=LABEL_POINTS * inches / PIECE_INCHES):
        figure = plotting.new_figure((inches * columns, inches * rows), layout=None)
        axes = figure.add_axes((0, 0, 1, 1))  # titles and labels stand around it
        picture = axes.imshow(alignment.weights, cmap="Greys", vmin=0.0, vmax=1.0, aspect="auto")
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position("top")
        axes.set_xlabel("source pieces", loc="left")
        axes.set_ylabel("target pieces", loc="top")
        axes.set_xticks(range(columns), sources, rotation=0 if upright else 90, parse_math=False)
        axes.set_yticks(range(rows), targets, parse_math=False)
        axes.tick_params(length=0)
        height = min(max(rows, SCALE_PIECES[0]), SCALE_PIECES[1])
        scale = figure.add_axes((1 + 0.5 / columns, 1 - height / rows, 0.5 / columns, height / rows))  # half a piece
        figure.colorbar(picture, cax=scale, label="attention weight, mean of heads")
        return plotting.image(figure, dpi=120, crop=True)


def _half_widths(text: str) -> int:
    """How wide `text` is in half-width characters: a Chinese one counts as two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _labels(pieces: Sequence[str], missing: set[str]) -> list[str]:
    return [f"[{i}]" if missing & set(piece) else piece for i, piece in enumerate(pieces)]
