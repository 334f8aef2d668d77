"""Attention weights of every layer and head as maps, of which a page shows one attention at a time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.cells import cell_len

from paddle_tfm.pages import document
from paddle_tfm.pages.style import NUM_LAYERS

if TYPE_CHECKING:
    from paddle_tfm.inference.attention_weights import HeadWeights

HEADS, MOST_PIECES = 8, 32  # that are shown at most, so that the page stays small
ROWS_AND_COLUMNS = (
    "A row is a query and what it attends to: in the encoder a piece of the source, in the decoder’s self-attention "
    "the piece that it reads, in cross-attention the piece that it is to write. The darker, the larger the weight."
)
CELL, LETTER = 14, 6  # pixels of a cell, and of a letter
LEVELS = 10  # shades
LONGEST = 10  # letters of a name that are shown
PLACES = [("encoder", "self"), ("decoder", "cross"), ("decoder", "self")]


class Reader(NamedTuple):
    """A model that read a sentence: what stands above its maps (HTML), and its attentions."""

    heading: str
    attentions: Sequence[HeadWeights]


class Sentence(NamedTuple):
    """A sentence, and those that read it."""

    text: str
    readers: Sequence[Reader]


def attention_maps(sentences: Sequence[Sentence], notes: Sequence[str]) -> str:
    """A choice of the attention, and below it each sentence with its readers side by side."""
    names = _names_of([item for sentence in sentences for reader in sentence.readers for item in reader.attentions])
    options = [(f"layer-{i}", _words(name)) for i, name in enumerate(names)]
    choice = document.choice("attention", "layer", options, names.index(_first_of(names))) if names else ""
    blocks = "".join(_block(sentence, names) for sentence in sentences)
    return f'<div class="maps">{choice}{blocks}{document.notes(notes)}</div>'


def _names_of(items: Sequence[HeadWeights]) -> list[str]:
    """The attentions, as many as can be chosen from: the encoder's, cross-attention, the decoder's."""

    def key(name: str) -> tuple[int, int]:
        stack, layer, sublayer = name.split(".")
        return PLACES.index((stack, sublayer)), int(layer)

    return sorted(dict.fromkeys(item.name for item in items), key=key)[:NUM_LAYERS]


def _first_of(names: Sequence[str]) -> str:
    """What is shown before anybody chooses: the cross-attention of the highest layer, or else the last; "" of none."""
    return next((name for name in reversed(names) if name.endswith("cross")), names[-1] if names else "")


def _words(name: str) -> str:
    """`encoder 0`, `cross 0`, `decoder 0`."""
    stack, layer, sublayer = name.split(".")
    return f"{'cross' if sublayer == 'cross' else stack} {layer}"


def _block(sentence: Sentence, names: Sequence[str]) -> str:
    """A sentence: below it what each reader wrote, and below that the maps of its heads."""
    columns = []
    for reader in sentence.readers:
        maps = "".join(
            f'<div class="map layer-{names.index(item.name)}"><div class="heads">{_heads(item)}</div></div>'
            for item in reader.attentions
            if item.name in names
        )
        columns.append(f"<div>{reader.heading}{maps}</div>")
    return (
        f'<div class="example"><h3 dir="auto">{escape(sentence.text)}</h3>'
        f'<div class="outputs">{"".join(columns)}</div></div>'
    )


def _heads(item: HeadWeights) -> str:
    """The mean of the heads, where there are several, and each of them."""
    shown = [(f"head {head}", weights) for head, weights in enumerate(item.weights[:HEADS])]
    if len(item.weights) > 1:
        shown.insert(0, ("mean of heads", item.weights.mean(0)))
    return "".join(heat_map(title, weights, item.queries, item.keys) for title, weights in shown)


def heat_map(title: str, values: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> str:
    """A map of shares [rows, columns] from 0 to 1, the darker the more; neighbours of one shade are one shape. Who
    cannot see it hears its title and where each row is largest."""
    left, top = (LETTER * max((cell_len(_cut(name)) for name in names), default=0) + 4 for names in (rows, columns))
    width, height = left + CELL * len(columns), top + CELL * len(rows)
    shares = np.nan_to_num(values)
    levels = np.clip(np.rint(shares * LEVELS), 0, LEVELS).astype(int)
    shapes = "".join(
        f'<path d="{_shape(levels == level, left, top)}" style="fill:var(--accent);fill-opacity:{level / LEVELS:g};'
        f'stroke:none"><title>about {level / LEVELS:g}</title></path>'
        for level in sorted(set(levels.ravel().tolist()) - {0})
    )
    frame = f'<path d="M{left} {top}H{width}V{height}H{left}Z" style="stroke:var(--line)"/>'
    names = "".join(
        f'<text x="{left - 3}" y="{top + CELL * i + 11}" text-anchor="end">{escape(_cut(name))}</text>'
        for i, name in enumerate(rows)
    )
    names += "".join(
        f'<text transform="translate({left + CELL * i + 11} {top - 3})rotate(-90)">{escape(_cut(name))}</text>'
        for i, name in enumerate(columns)
    )
    most = "; ".join(f"{_visible(row)} on {_visible(columns[int(share.argmax())])}" for row, share in zip(rows, shares))
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
    """A piece, its white space to be seen."""
    return "".join("␣" if character.isspace() else character for character in name)


def _cut(name: str) -> str:
    return _visible(name) if len(name) <= LONGEST else f"{_visible(name)[: LONGEST - 1]}…"
