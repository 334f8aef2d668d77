"""Attention weights of every layer and head as maps, of which a page shows one attention at a time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from paddle_tfm.comparison.report.figures.heat_map import HeatMap
from paddle_tfm.pages import document
from paddle_tfm.pages.style import NUM_LAYERS

if TYPE_CHECKING:
    from paddle_tfm.inference.attention_weights import HeadWeights

HEADS, MOST_PIECES = 8, 32  # that are shown at most, so that the page stays small
ROWS_AND_COLUMNS = (
    "A row is a query and what it attends to: in the encoder a piece of the source, in the decoder’s self-attention "
    "the piece that it reads, in cross-attention the piece that it is to write. The darker, the larger the weight."
)
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
    names = names_of([item for sentence in sentences for reader in sentence.readers for item in reader.attentions])
    options = [(f"layer-{i}", words(name)) for i, name in enumerate(names)]
    choice = document.choice("attention", "layer", options, names.index(first_of(names))) if names else ""
    blocks = "".join(_block(sentence, names) for sentence in sentences)
    return f'<div class="maps">{choice}{blocks}{document.notes(notes)}</div>'


def names_of(items: Sequence[HeadWeights]) -> list[str]:
    """The attentions, as many as can be chosen from: the encoder's, cross-attention, the decoder's."""

    def key(name: str) -> tuple[int, int]:
        stack, layer, sublayer = name.split(".")
        return PLACES.index((stack, sublayer)), int(layer)

    return sorted(dict.fromkeys(item.name for item in items), key=key)[:NUM_LAYERS]


def first_of(names: Sequence[str]) -> str:
    """What is shown before anybody chooses: the cross-attention of the highest layer, or else the last; "" of none."""
    return next((name for name in reversed(names) if name.endswith("cross")), names[-1] if names else "")


def words(name: str) -> str:
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
    return "".join(HeatMap(title, weights, item.queries, item.keys).html() for title, weights in shown)
