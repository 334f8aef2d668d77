"""A paragraph of methods to paste into a paper, and what it cites."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from paddle_tfm.comparison.report import paper
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.protocols import Section


class Paper(Section):
    """How it was done, as a paper says it: the numbers filled in, and the entries of its bibliography."""

    heading = "For a paper"
    place = 850

    def html(self, facts: Facts) -> str:
        """The paragraph, and below it the entries."""
        entries = "\n\n".join(paper.bibliography(facts).values())
        return (
            f'<h3>Methods</h3><p class="text">{escape(paper.methods(facts))}</p>'
            f'<h3>BibTeX</h3><pre class="command"><code>{escape(entries)}</code></pre>'
        )

    def data(self, facts: Facts) -> Mapping[str, Any]:
        """The same for programs; the paragraph also as LaTeX, which cites the entries."""
        return {
            "methods": paper.methods(facts),
            "methods_latex": paper.methods(facts, latex=True),
            "bibtex": paper.bibliography(facts),
        }
