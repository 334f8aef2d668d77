"""Outputs of the variants for the same sources, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

from paddle_tfm.comparison.report.samples import SideBySide, side_by_side
from paddle_tfm.comparison.report.section_input import Facts
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
    ranks = [dict(zip(ORDERS, places)) for places in zip(*(_ranks(chosen, key) for key in ORDERS.values()))]
    examples = "".join(_example(facts, item, rank) for item, rank in zip(chosen, ranks))
    return (
        f'<p class="note">{escape(note)}</p><div class="sorted">{_choice(len(chosen[0].outputs))}'
        f'<div class="examples">{examples}</div></div>'
    )


# How examples can be sorted, by the style sheet alone: name → what is largest first.
ORDERS: dict[str, Callable[[SideBySide], float]] = {
    "differ": lambda item: max(item.likeness) - min(item.likeness),
    "hard": lambda item: -sum(item.likeness),
    "long": lambda item: len(item.source or item.reference),
}
SAID = {"differ": "how much the variants differ", "hard": "the hardest first", "long": "the longest source first"}


def _ranks(items: Sequence[SideBySide], key: Callable[[SideBySide], float]) -> list[int]:
    """The place of each item."""
    places = sorted(range(len(items)), key=lambda i: -key(items[i]))
    return [places.index(i) for i in range(len(items))]


def _choice(variants: int) -> str:
    names = [name for name in SAID if variants > 1 or name != "differ"]
    radios = "".join(
        f'<label><input type="radio" name="sort" id="sort-{name}"{" checked" if i == 0 else ""}>{SAID[name]}</label>'
        for i, name in enumerate(names)
    )
    return f'<fieldset class="against-what"><legend>sorted by</legend>{radios}</fieldset>'


def _example(facts: Facts, item: SideBySide, rank: Mapping[str, int]) -> str:
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
    order = ";".join(f"--{name}:{place}" for name, place in rank.items())
    above = "".join(f'<div><dt>{name}</dt><dd dir="auto">{text}</dd></div>' for name, text in texts)
    return (
        f'<div class="example" style="{order}"><h3>{escape(item.why)}</h3><dl class="outputs texts">{above}</dl>'
        f'<dl class="outputs">{outputs}</dl></div>\n'
    )
