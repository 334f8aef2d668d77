"""Claims: what the recipe said before its first run, and what the runs say of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape

from paddle_tfm.comparison.claims.judge import Claims as Judged
from paddle_tfm.comparison.claims.judge import Judgement
from paddle_tfm.comparison.claims.words import claimed, measured, subject
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.statistics import CONFIDENCE
from paddle_tfm.pages.document import table
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Column, Table

CAPTION = "What the recipe claims, and what its runs say of it."
BADGES = {"reproduced": "better", "not reproduced": "worse"}  # verdict → the look of a badge


class Claims(Section):
    """What the recipe said before its first run, and what the runs say of it."""

    heading = "Claims"
    place = 150

    def applies(self, facts: Facts) -> bool:
        """Whether the recipe claims anything."""
        return facts.comparison.claims is not None

    def tables(self, facts: Facts) -> dict[str, Table]:
        """A row for each claim."""
        columns = {
            "claim": lambda judgement: judgement.name,
            "verdict": lambda judgement: judgement.verdict,
            "measured": lambda judgement: f"{subject(judgement.claim)}: {measured(judgement)}",
            "claimed": lambda judgement: claimed(judgement.claim, judgement.unit),
            "source": lambda judgement: judgement.claim.source,
        }
        judgements = facts.comparison.claims.judgements if facts.comparison.claims else ()
        return {"claims": Table([_column(*item) for item in columns.items()], judgements, CAPTION)}

    def html(self, facts: Facts) -> str:
        """A row for each claim, and the rule that decided."""
        return _html(facts.comparison.claims) if facts.comparison.claims else ""


def _column(name: str, text: Callable[[Judgement], str]) -> Column[Judgement]:
    return Column(name, text, lambda judgement: {name: text(judgement)})


def _html(claims: Judged) -> str:
    rows = [_row(judgement) for judgement in claims.judgements]
    header = ["claim", "verdict", "measured", "claimed", "source"]
    rule = (
        f"A claim is reproduced where the whole {CONFIDENCE:.0%} interval (Student's t, over seeds) lies within what "
        "it allows, not reproduced where all of it lies outside, and else undetermined."
    )
    remark = f"<p><strong>{escape(claims.remark())}</strong></p>" if claims.remark() else ""
    return f'{remark}{table(CAPTION, header, rows, texts=range(5))}<p class="note">{escape(rule)}</p>'


def _row(judgement: Judgement) -> list[str]:
    claim, unit = judgement.claim, judgement.unit
    badge = f'<b class="badge {BADGES.get(judgement.verdict, "undetermined")}">{escape(judgement.verdict)}</b>'
    source = re.sub(r"arXiv:(\d{4}\.\d{4,5})", r'<a href="https://arxiv.org/abs/\1">arXiv:\1</a>', escape(claim.source))
    name = f"<bdi>{escape(judgement.name)}</bdi><br><small>{escape(claim.says)}</small>"
    numbers = f"{escape(subject(claim))}: {escape(measured(judgement))}"
    return [name, badge, numbers, escape(claimed(claim, unit)), source]
