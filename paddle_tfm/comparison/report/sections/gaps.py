"""All in which variants differ from the baseline, but for their costs."""

from __future__ import annotations

from collections.abc import Sequence

from paddle_tfm.comparison.gaps import gaps, last_bits
from paddle_tfm.comparison.report.recipe_words import component
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.language import _
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Column, Table, column


class Gaps(Section):
    """All in which variants differ from the baseline: settings with the defaults of components, who provides these,
    texts, Paddle's build and the machine."""

    heading = "What differs"
    summary = "every setting, text and version in which a variant differs from the baseline"
    place = 205

    def applies(self, facts: Facts) -> bool:
        """Whether anything differs beside costs, which have a section of their own."""
        return any(facts.once(gaps_of).values())

    def tables(self, facts: Facts) -> dict[str, Table]:
        rows = [{"variant": variant, **row} for variant, rows in facts.once(gaps_of).items() for row in rows]
        title = _("All in which variants differ from the baseline, with the defaults of components")
        return {"gaps": Table([column("variant"), *_columns(rows, _("baseline"), _("here"))], rows, title)}

    def data(self, facts: Facts) -> dict[str, list[dict[str, str | None]]]:
        return {variant: rows for variant, rows in facts.once(gaps_of).items() if rows}


def gaps_of(facts: Facts) -> dict[str, list[dict[str, str | None]]]:
    """variant → a row for each thing in which it is not like the baseline."""
    base, *others = facts.sides()
    return {
        side.name: [
            {
                "section": gap.section,
                "what": gap.what,
                "one": component(gap.one),
                "other": component(gap.other),
                "last_bits": last_bits(gap),
            }
            for gap in gaps(base, side)
        ]
        for side in others
    }


def gaps_of_two(facts: Facts) -> Table:
    """In what the one variant differs from the baseline."""
    ((variant, rows),) = facts.once(gaps_of).items()
    return Table(
        _columns(rows, facts.baseline, variant),
        rows,
        _("In what {variant} differs from {baseline}").format(variant=variant, baseline=facts.baseline),
    )


def _columns(rows: Sequence[dict[str, str | None]], one: str, other: str) -> list[Column]:
    columns = [
        column("section", importance=10, style="dim"),
        column("what", style="cyan"),
        column("one", one, prose=True, is_name=True),
        column("other", other, prose=True, is_name=True),
    ]
    if any(row["last_bits"] for row in rows):
        columns.append(column("last_bits", "what it does to last bits", _, prose=True))
    return columns
