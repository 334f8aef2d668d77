"""How to read the report."""

from __future__ import annotations

from html import escape

from paddle_tfm.comparison.columns import notes
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.protocols import Section


class Reading(Section):
    """What the numbers of the report mean."""

    heading = "How to read it"
    place = 900

    def html(self, facts: Facts) -> str:
        """A paragraph for each note."""
        return "".join(f"<p>{escape(note)}</p>" for note in notes(facts.comparison))
