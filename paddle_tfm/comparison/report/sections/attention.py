"""Where the variants look: attention weights of every layer and head, on sentences that they write differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from paddle_tfm.comparison.report.figures.heat import HeatMap, heat_figure
from paddle_tfm.comparison.report.samples import SideBySide, side_by_side
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.errors import UserError
from paddle_tfm.pages.attention import (
    HEADS,
    MOST_PIECES,
    ROWS_AND_COLUMNS,
    Reader,
    Sentence,
    attention_maps,
    first_of,
    names_of,
    words,
)
from paddle_tfm.pages.chart import colour
from paddle_tfm.protocols import Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from paddle_tfm.inference.attention_weights import HeadWeights
    from paddle_tfm.train.run import Run

SENTENCES, VARIANTS, PIECES = 2, 4, 16  # that are shown at most, so that the page stays small
OWN_OUTPUT = f"Each variant reads its own output; at most {VARIANTS} variants and {HEADS} heads are shown."
CHOSEN = f"The sentences are those of --sentence; of a longer one the first {MOST_PIECES} pieces are shown."
DIFFERING = (
    f"Shown are the sentences of at most {PIECES} pieces on which the variants differ most, and of an output as many "
    "pieces; paddle-tfm report --sentence TEXT shows others."
)


class Attended(NamedTuple):
    """A source, what each variant wrote for it, and where it looked."""

    source: str
    outputs: Mapping[str, str]
    attentions: Mapping[str, Sequence[HeadWeights]]


class Attention(Section):
    """Attention weights by layer and head with the pieces on both axes, the variants side by side: does *it* look at
    *animal* or at *street*?"""

    heading = "Attention"
    place = 410
    slow = True

    def applies(self, facts: Facts) -> bool:
        """Whether sentences were chosen; or else outputs recorded, and a model can be loaded whose attention has
        weights to show."""
        return bool(facts.chosen or facts.once(_sentences)[0])

    def figures(self, facts: Facts) -> dict[str, Figure]:
        """Of each sentence and variant the heads of the attention that the page shows first."""
        figures = {}
        sentences, _ = facts.once(_sentences)
        first = first_of(names_of([item for each in sentences for items in each.attentions.values() for item in items]))
        for number, sentence in enumerate(sentences, 1):
            for variant, attentions in sentence.attentions.items():
                for item in attentions:
                    if item.name == first:
                        figures[f"attention-{number}-{facts.numbers[variant]}"] = _figure(variant, item)
        return figures

    def html(self, facts: Facts) -> str:
        """A choice of the attention, and below it each sentence with its variants."""
        sentences, lacking = facts.once(_sentences)
        shown = [
            Sentence(
                each.source,
                [Reader(_heading(facts, each, variant), each.attentions[variant]) for variant in each.attentions],
            )
            for each in sentences
        ]
        notes = [ROWS_AND_COLUMNS, OWN_OUTPUT, CHOSEN if facts.chosen else DIFFERING, *lacking, *facts.models.remarks]
        return attention_maps(shown, notes)


def _sentences(facts: Facts) -> tuple[list[Attended], list[str]]:
    """Those that were chosen, or else some of this comparison; and why others are not shown."""
    return _chosen(facts) if facts.chosen else _differing(facts)


def _chosen(facts: Facts) -> tuple[list[Attended], list[str]]:
    from paddle_tfm.inference.attention_weights import read_by

    sentences: list[Attended] = []
    lacking: dict[str, None] = {}
    for text in facts.chosen:
        readings = {}
        for variant in list(facts.numbers)[:VARIANTS]:
            try:
                readings[variant] = read_by(_model(facts, variant), text)
            except UserError as error:
                lacking[f"{variant}, “{text}”: {error}"] = None
        if readings:
            outputs = {variant: reading.output for variant, reading in readings.items()}
            cut = {variant: [item.cut(MOST_PIECES) for item in each.attentions] for variant, each in readings.items()}
            sentences.append(Attended(text, outputs, cut))
    return sentences, list(lacking)


def _differing(facts: Facts) -> tuple[list[Attended], list[str]]:
    sentences: list[Attended] = []
    lacking: dict[str, None] = {}
    for sample in side_by_side(facts.comparison):
        names = sorted(sample.outputs, key=lambda name: name != facts.baseline)[:VARIANTS]
        attentions = {}
        for name in names:
            try:
                attentions[name] = _short(facts, sample, name)
            except UserError as error:
                lacking[str(error)] = None
        if shown := {name: items for name, items in attentions.items() if items}:
            sentences.append(Attended(sample.source, sample.outputs, shown))
        if len(sentences) == SENTENCES or not attentions:
            break
    return sentences, list(lacking)


def _short(facts: Facts, sample: SideBySide, variant: str) -> Sequence[HeadWeights]:
    """Those of a variant's model; none where the source is too long for a map, or no attention records weights.

    Raises:
        UserError: the model cannot be loaded.
    """
    from paddle_tfm.inference.attention_weights import head_weights

    run = _model(facts, variant, sample.seed)
    items = head_weights(run.model, run.codec, sample.source, sample.outputs[variant])
    if any(len(item.keys) > PIECES for item in items if item.name.startswith("encoder")):
        return []
    return [item.cut(PIECES) for item in items]


def _model(facts: Facts, variant: str, seed: int | None = None) -> Run:
    """The run that stands for a variant. Raises UserError: it cannot be loaded."""
    result = facts.run_of(variant, seed)
    if (run := facts.models(result)) is None:
        raise UserError(facts.models.why(result))
    return run


def _heading(facts: Facts, sentence: Attended, variant: str) -> str:
    """A variant in its colour, and what it wrote."""
    swatch = f'<i class="swatch {colour(facts.numbers[variant])}"></i><bdi>{escape(variant)}</bdi>'
    output = sentence.outputs[variant]
    written = f': <span dir="auto">{escape(output)}</span>' if output != sentence.source else ""
    return f"<p>{swatch}{written}</p>"


def _figure(variant: str, item: HeadWeights) -> Figure:
    maps = [
        HeatMap(f"{variant}, {words(item.name)}, head {head}", weights, item.queries, item.keys)
        for head, weights in enumerate(item.weights[:HEADS])
    ]
    return heat_figure(maps, ("query", "key", "attention weight"), "share", (3.0, 2.8))
