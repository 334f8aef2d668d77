"""Where the variants look: attention weights of every layer and head, on sentences that they write differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from paddle_tfm.comparison.facts import Facts
from paddle_tfm.comparison.heat import HeatMap, heat_figure
from paddle_tfm.comparison.samples import SideBySide, side_by_side
from paddle_tfm.errors import UserError
from paddle_tfm.pages.chart import colour
from paddle_tfm.pages.heat import heat_map
from paddle_tfm.pages.style import NUM_LAYERS
from paddle_tfm.protocols import Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from paddle_tfm.inference.heads import HeadWeights

SENTENCES, VARIANTS, HEADS, PIECES = 2, 4, 8, 16  # that are shown at most, so that the page stays small
NOTE = (
    "A row is a query and what it attends to: in the encoder a piece of the source, in the decoder’s self-attention "
    "the piece that it reads, in cross-attention the piece that it is to write. Each variant reads its own output. "
    f"Shown are the sentences of at most {PIECES} pieces on which the variants differ most, and of an output as many "
    f"pieces, of at most {VARIANTS} variants and {HEADS} heads."
)


class Sentence(NamedTuple):
    """A sentence, and by variant the attentions on it."""

    sample: SideBySide
    attentions: Mapping[str, Sequence[HeadWeights]]


class Attention(Section):
    """Attention weights by layer and head with the pieces on both axes, the variants side by side: does *it* look at
    *animal* or at *street*?"""

    heading = "Attention"
    place = 410
    slow = True

    def applies(self, facts: Facts) -> bool:
        """Whether outputs were recorded, and a model can be loaded whose attention has weights to show."""
        return bool(facts.once(_sentences)[0])

    def figures(self, facts: Facts) -> dict[str, Figure]:
        """Of each sentence and variant the heads of the attention that the page shows first."""
        figures = {}
        sentences, _ = facts.once(_sentences)
        first = _first(_names(sentences))
        for number, sentence in enumerate(sentences, 1):
            for variant, attentions in sentence.attentions.items():
                for item in attentions:
                    if item.name == first:
                        figures[f"attention-{number}-{facts.numbers[variant]}"] = _figure(variant, item)
        return figures

    def html(self, facts: Facts) -> str:
        """A choice of the attention, and below it each sentence with its variants."""
        sentences, lacking = facts.once(_sentences)
        names = _names(sentences)
        radios = "".join(
            f'<label><input type="radio" name="layer" id="layer-{i}"{" checked" if name == _first(names) else ""}>'
            f"{_words(name)}</label>"
            for i, name in enumerate(names)
        )
        blocks = "".join(_block(facts, sentence, names) for sentence in sentences)
        notes = "".join(f'<p class="note">{escape(text)}</p>' for text in [NOTE, *lacking, *facts.models.remarks])
        return f'<div class="maps"><fieldset><legend>attention</legend>{radios}</fieldset>{blocks}{notes}</div>'


def _sentences(facts: Facts) -> tuple[list[Sentence], list[str]]:
    """Those of this comparison, and which models cannot be shown."""
    sentences: list[Sentence] = []
    lacking: dict[str, None] = {}
    for sample in side_by_side(facts.comparison):
        names = sorted(sample.outputs, key=lambda name: name != facts.baseline)[:VARIANTS]
        attentions = {}
        for name in names:
            try:
                attentions[name] = _attentions(facts, sample, name)
            except UserError as error:
                lacking[str(error)] = None
        if shown := {name: items for name, items in attentions.items() if items}:
            sentences.append(Sentence(sample, shown))
        if len(sentences) == SENTENCES or not attentions:
            break
    return sentences, list(lacking)


def _attentions(facts: Facts, sample: SideBySide, variant: str) -> Sequence[HeadWeights]:
    """Those of a variant's model; none where the source is too long for a map, or no attention records weights.

    Raises:
        UserError: the model cannot be loaded.
    """
    from paddle_tfm.inference.heads import HeadWeights, head_weights

    result = facts.run_of(variant, sample.seed)
    if (run := facts.models(result)) is None:
        raise UserError(facts.models.why(result))
    items = head_weights(run.model, run.codec, sample.source, sample.outputs[variant])
    if any(len(item.keys) > PIECES for item in items if item.name.startswith("encoder")):
        return []
    return [
        HeadWeights(item.name, item.queries[:PIECES], item.keys[:PIECES], item.weights[:, :PIECES, :PIECES])
        for item in items
    ]


def _names(sentences: Sequence[Sentence]) -> list[str]:
    """The attentions of all variants, as many as can be chosen from: the encoder's, cross-attention, the decoder's."""
    all_items = [item for sentence in sentences for items in sentence.attentions.values() for item in items]
    names = dict.fromkeys(item.name for item in all_items)
    places = [("encoder", "self"), ("decoder", "cross"), ("decoder", "self")]

    def key(name: str) -> tuple[int, int]:
        stack, layer, sublayer = name.split(".")
        return places.index((stack, sublayer)), int(layer)

    return sorted(names, key=key)[:NUM_LAYERS]


def _first(names: Sequence[str]) -> str:
    """What is shown before anybody chooses: the cross-attention of the highest layer, or else the last."""
    return next((name for name in reversed(names) if name.endswith("cross")), names[-1])


def _words(name: str) -> str:
    """`encoder 0`, `cross 0`, `decoder 0`."""
    stack, layer, sublayer = name.split(".")
    return f"{'cross' if sublayer == 'cross' else stack} {layer}"


def _block(facts: Facts, sentence: Sentence, names: Sequence[str]) -> str:
    """A sentence: below its source each variant's output, and below that the maps of its heads."""
    columns = []
    for variant, attentions in sentence.attentions.items():
        swatch = f'<i class="swatch {colour(facts.numbers[variant])}"></i><bdi>{escape(variant)}</bdi>'
        parts = [f'<p>{swatch}: <span dir="auto">{escape(sentence.sample.outputs[variant])}</span></p>']
        for item in attentions:
            if item.name in names:
                heads = "".join(
                    heat_map(weights, item.queries, item.keys, f"head {head}")
                    for head, weights in enumerate(item.weights[:HEADS])
                )
                parts.append(f'<div class="map layer-{names.index(item.name)}"><div class="heads">{heads}</div></div>')
        columns.append(f"<div>{''.join(parts)}</div>")
    source = f'<h3 dir="auto">{escape(sentence.sample.source)}</h3>'
    return f'<div class="example">{source}<div class="outputs">{"".join(columns)}</div></div>'


def _figure(variant: str, item: HeadWeights) -> Figure:
    maps = [
        HeatMap(f"{variant}, {_words(item.name)}, head {head}", weights, item.queries, item.keys)
        for head, weights in enumerate(item.weights[:HEADS])
    ]
    return heat_figure(maps, ("query", "key", "attention weight"), "share", (3.0, 2.8))
