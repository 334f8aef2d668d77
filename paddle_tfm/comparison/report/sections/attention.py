"""Where the variants look: attention weights of every layer and head, on sentences that they write differently."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from paddle_tfm import plotting
from paddle_tfm.comparison.report.attention_maps import (
    HEADS,
    MOST_PIECES,
    ROWS_AND_COLUMNS,
    Reader,
    Sentence,
    attention_maps,
    shown_first,
    visible,
)
from paddle_tfm.comparison.report.outputs import side_by_side
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.errors import UserError
from paddle_tfm.pages.document import named
from paddle_tfm.protocols import Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from paddle_tfm.inference.attention_weights import HeadWeights

WIDTH = 3.6  # inches of a map
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
    summary = "weights of every layer and head, on sentences that the variants write differently"
    place = 410
    slow = True

    def applies(self, facts: Facts) -> bool:
        """Whether sentences were chosen; or else outputs recorded, and a model can be loaded whose attention has
        weights to show."""
        return bool(facts.chosen or facts.once(_sentences)[0])

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

    def figures(self, facts: Facts) -> dict[str, Figure]:
        """Of each sentence the attention that the page shows first, a map for each variant: the mean of its heads."""
        sentences, _ = facts.once(_sentences)
        return {f"attention-{number}": _figure(facts, each) for number, each in enumerate(sentences, 1)}


def _figure(facts: Facts, sentence: Attended) -> Figure:
    shown = {variant: shown_first(items) for variant, items in sentence.attentions.items()}
    title = f"{next(iter(shown.values())).name}, mean of heads: {sentence.source}"
    texts = [title, *shown, *(piece for item in shown.values() for piece in (*item.queries, *item.keys))]
    with plotting.drawing(texts, (WIDTH * len(shown), WIDTH)) as figure:
        for axes, (variant, item) in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown.items()):
            axes.imshow(item.weights.mean(0), cmap="Blues", vmin=0, vmax=1, aspect="auto")
            axes.set_xticks(range(len(item.keys)), [plotting.one_line(visible(key)) for key in item.keys], rotation=90)
            axes.set_yticks(range(len(item.queries)), [plotting.one_line(visible(query)) for query in item.queries])
            axes.tick_params(labelsize=8, length=0)
            axes.set_title(plotting.label(variant), color=plotting.line_style(facts.numbers[variant]).colour)
            axes.set(xlabel="key", ylabel="query")
        plotting.heading(figure, title, WIDTH * len(shown))
    return figure


def _sentences(facts: Facts) -> tuple[list[Attended], list[str]]:
    """Those that were chosen, or else some of this comparison; and why others are not shown."""
    sentences: list[Attended] = []
    lacking: dict[str, None] = {}
    for source, known, seed in _candidates(facts):
        outputs, attentions = dict(known), {}
        for variant in [name for name in facts.numbers if name in known or not known][:VARIANTS]:
            try:
                outputs[variant], attentions[variant] = _read(facts, variant, source, known.get(variant), seed)
            except UserError as error:
                lacking[f"{variant}, “{source}”: {error}" if facts.chosen else str(error)] = None
        shown = {name: items for name, items in attentions.items() if items}
        sentences += [Attended(source, outputs, shown)] if shown else []
        if not facts.chosen and (len(sentences) == SENTENCES or not attentions):
            break
    return sentences, list(lacking)


def _candidates(facts: Facts) -> Iterable[tuple[str, Mapping[str, str], int | None]]:
    """Sources, what each variant wrote for them, if that is known, and with which seed."""
    if facts.chosen:
        return [(text, {}, None) for text in facts.chosen]
    return [(sample.source, sample.outputs, sample.seed) for sample in side_by_side(facts.comparison)]


def _read(
    facts: Facts, variant: str, source: str, output: str | None, seed: int | None
) -> tuple[str, Sequence[HeadWeights]]:
    """What a variant's model writes, or wrote, and where it looks; of a source of the test that is too long for a map,
    or where no attention records weights, nothing.

    Raises:
        UserError: the model cannot be loaded, or the text is none for it.
    """
    from paddle_tfm.inference.attention_weights import head_weights, read_by

    result = facts.run_of(variant, seed)
    if (run := facts.models(result)) is None:
        raise UserError(facts.models.why(result))
    if output is None:
        reading = read_by(run, source)
        return reading.output, [item.cut(MOST_PIECES) for item in reading.attentions]
    items = head_weights(run.model, run.codec, source, output)
    is_long = any(len(item.keys) > PIECES for item in items if item.name.startswith("encoder"))
    return output, [] if is_long else [item.cut(PIECES) for item in items]


def _heading(facts: Facts, sentence: Attended, variant: str) -> str:
    """A variant in its colour, and what it wrote."""
    output = sentence.outputs[variant]
    written = f': <span dir="auto">{escape(output)}</span>' if output != sentence.source else ""
    return f"<p>{named(facts.numbers[variant], variant)}{written}</p>"
