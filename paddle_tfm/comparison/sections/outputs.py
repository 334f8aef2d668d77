"""Outputs of the variants for the same sources, side by side."""

from __future__ import annotations

from html import escape

from paddle_tfm.comparison.facts import Facts
from paddle_tfm.comparison.samples import SideBySide, side_by_side
from paddle_tfm.pages.chart import colour
from paddle_tfm.pages.marks import MAX_CHARACTERS, marked
from paddle_tfm.protocols import Section


class Outputs(Section):
    """What each variant wrote for the same sources, side by side."""

    heading = "Outputs"
    place = 400

    def html(self, facts: Facts) -> str:
        """A block for each source: the reference, and below it what each variant wrote."""
        return _html(facts)


def _html(facts: Facts) -> str:
    chosen = side_by_side(facts.comparison)
    if not chosen:
        return "<p>None were recorded: there is no test split, no metric needs outputs, or no run came to its end.</p>"
    if len(chosen[0].outputs) > 1:
        how = "those on which the variants differ most, the hardest and a typical one"
    else:
        how = "the hardest, a typical one and the best"
    note = f"Of seed {chosen[0].seed}: {how}. Marked in an output is what the reference does not have."
    return f'<p class="note">{escape(note)}</p>' + "".join(_example(facts, item) for item in chosen)


def _example(facts: Facts, item: SideBySide) -> str:
    single = len(item.outputs) == 1
    reference = marked(item.reference, *item.outputs.values())[0] if single else escape(item.reference[:MAX_CHARACTERS])
    texts = [("source", escape(item.source[:MAX_CHARACTERS]))] if item.source else []
    texts.append(("reference", reference))
    outputs = ""
    for variant, hypothesis in item.outputs.items():
        name = f'<i class="swatch {colour(facts.numbers[variant])}"></i><bdi>{escape(variant)}</bdi>'
        right = hypothesis == item.reference
        text = f"✓ {escape(hypothesis[:MAX_CHARACTERS])}" if right else marked(item.reference, hypothesis)[1]
        outputs += f'<div><dt>{name}</dt><dd dir="auto">{text}</dd></div>'
    above = "".join(f'<div><dt>{name}</dt><dd dir="auto">{text}</dd></div>' for name, text in texts)
    return (
        f'<div class="example"><h3>{escape(item.why)}</h3><dl class="outputs texts">{above}</dl>'
        f'<dl class="outputs">{outputs}</dl></div>\n'
    )
