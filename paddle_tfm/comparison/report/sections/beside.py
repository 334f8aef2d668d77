"""What differs between variants beside their settings and their costs."""

from __future__ import annotations

from collections.abc import Iterator

from paddle_tfm.comparison.report import recipe_words
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.sides import gaps
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Table, column
from paddle_tfm.train.changes import SETTINGS, Gap


class Beside(Section):
    """Versions, texts and machines in which variants differ from the baseline."""

    heading = "Beside the variants"
    place = 250

    def applies(self, facts: Facts) -> bool:
        """Whether anything differs beside settings and costs, which have sections of their own."""
        return any(_differing(facts))

    def tables(self, facts: Facts) -> dict[str, Table]:
        """A row for each thing in which a variant is not like the baseline."""
        rows = []
        for variant, item in _differing(facts):
            texts = f"{item.section}: {item.what}", recipe_words.component(item.one), recipe_words.component(item.other)
            rows.append({"variant": variant, **dict(zip(("what", "baseline", "here"), texts))})
        title = "What differs from the baseline beside settings, and may be what a difference of scores is owed to"
        return {"beside": Table([column(key) for key in ("variant", "what", "baseline", "here")], rows, title)}


def _differing(facts: Facts) -> Iterator[tuple[str, Gap]]:
    """Of each variant what is not the baseline's, as `paddle-tfm diff` says it."""
    base, *others = facts.sides()
    for side in others:
        yield from ((side.name, gap) for gap in gaps(base, side) if gap.section != SETTINGS)
