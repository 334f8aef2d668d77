"""Where the variants look: attention weights of every layer and head, on sentences that they write differently."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from paddle_tfm.comparison.report.attention_maps import (
    HEADS,
    MOST_PIECES,
    ROWS_AND_COLUMNS,
    Reader,
    Sentence,
    attention_maps,
)
from paddle_tfm.comparison.report.outputs import side_by_side
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.errors import UserError
from paddle_tfm.pages.document import named
from paddle_tfm.protocols import Section

if TYPE_CHECKING:
    from paddle_tfm.inference.attention_weights import HeadWeights

SENTENCES, VARIANTS, PIECES = 2, 4, 16  # that are shown at most, so that the page stays small
OWN_OUTPUT = f"Each variant reads its own output; at most {VARIANTS} variants and {HEADS} heads are shown."
CHOSEN = f"The sentences are those of --sentence; of a longer one the first {MOST_PIECES} pieces are shown."
DIFFERING = (
    f"Shown are the sentences of at most {PIECES} pieces on which the variants differ most, and of an output as many "
    "pieces; paddle-tfm report --sentence TEXT shows others."
)


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
        notes = [ROWS_AND_COLUMNS, OWN_OUTPUT, CHOSEN if facts.chosen else DIFFERING, *lacking, *facts.remarks]
        return attention_maps(sentences, notes)


def _sentences(facts: Facts) -> tuple[list[Sentence], list[str]]:
    """Those that were chosen, or else some of this comparison, with the variants that read them; and why others are not
    shown."""
    sentences: list[Sentence] = []
    lacking: dict[str, None] = {}
    for source, known, seed in _candidates(facts):
        readers, are_read = [], False
        for variant in [name for name in facts.numbers if name in known or not known][:VARIANTS]:
            try:
                output, attentions = _read(facts, variant, source, known.get(variant), seed)
            except UserError as error:
                lacking[f"{variant}, “{source}”: {error}" if facts.chosen else str(error)] = None
                continue
            are_read = True
            if attentions:
                readers.append(Reader(_heading(facts, variant, source, output), attentions))
        sentences += [Sentence(source, readers)] if readers else []
        if not facts.chosen and (len(sentences) == SENTENCES or not are_read):
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

    run = facts.load(facts.run_of(variant, seed))
    if output is None:
        reading = read_by(run, source)
        return reading.output, [item.cut(MOST_PIECES) for item in reading.attentions]
    items = head_weights(run.model, run.codec, source, output)
    is_long = any(len(item.keys) > PIECES for item in items if item.name.startswith("encoder"))
    return output, [] if is_long else [item.cut(PIECES) for item in items]


def _heading(facts: Facts, variant: str, source: str, output: str) -> str:
    """A variant in its colour, and what it wrote."""
    written = f': <span dir="auto">{escape(output)}</span>' if output != source else ""
    return f"<p>{named(facts.numbers[variant], variant)}{written}</p>"
