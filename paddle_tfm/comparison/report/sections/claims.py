"""Claims: what the recipe said before its first run, and what the runs say of it."""

from __future__ import annotations

import re
from html import escape

from paddle_tfm.comparison.claims.judge import Judgement
from paddle_tfm.comparison.claims.words import claimed, measured, subject
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.statistics import CONFIDENCE
from paddle_tfm.language import _
from paddle_tfm.pages import document
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Table, column

BADGES = {"reproduced": "better", "not reproduced": "worse"}  # verdict → the look of a badge


class Claims(Section):
    """What the recipe said before its first run, and what the runs say of it."""

    heading = "Claims"
    summary = "the recipe's claims before its first run, and its results"
    place = 150

    def applies(self, facts: Facts) -> bool:
        return facts.comparison.claims is not None

    def tables(self, facts: Facts) -> dict[str, Table]:
        columns = [
            column("claim", of=lambda judgement: judgement.name),
            column("verdict", text=_, of=lambda judgement: judgement.verdict),
            column("measured", of=lambda judgement: f"{subject(judgement.claim)}: {measured(judgement)}"),
            column("claimed", of=lambda judgement: claimed(judgement.claim, judgement.unit)),
            column("source", of=lambda judgement: judgement.claim.source),
        ]
        judgements = facts.comparison.claims.judgements if facts.comparison.claims else ()
        return {"claims": Table(columns, judgements, _("The recipe's claims, and its results."))}

    def text(self, facts: Facts) -> list[str]:
        """Of each claim its verdict and sentence, and below it what was measured and what is claimed."""
        if (claims := facts.comparison.claims) is None:
            return []
        lines = [_("claims:"), *([f"  {claims.remark()}"] if claims.remark() else [])]
        for each in claims.judgements:
            numbers = f"{subject(each.claim)}: {measured(each)}; {_('claimed')}: {claimed(each.claim, each.unit)}"
            says = " ".join(each.claim.says.split())
            lines += [f"  {_(each.verdict)}  {each.name}  ({each.claim.source})", f"    {says}", f"    {numbers}"]
        return lines

    def html(self, facts: Facts) -> str:
        """A row for each claim with what it says and a link to its source, and the rule that decided."""
        table, claims = self.tables(facts)["claims"], facts.comparison.claims
        rows = [_cells(row, [escape(each.cell(row)) for each in table.columns]) for row in table.rows]
        shown = document.table(table.title, [each.title for each in table.columns], rows, range(5))
        rule = _(
            "A claim is reproduced where the whole {confidence} interval (Student's t, over seeds) lies within what it "
            "allows, not reproduced where all of it lies outside, and else undetermined."
        ).format(confidence=f"{CONFIDENCE:.0%}")
        remark = f"<p><strong>{escape(claims.remark())}</strong></p>" if claims and claims.remark() else ""
        return f"{remark}{shown}{document.notes([rule])}"


def _cells(judgement: Judgement, cells: list[str]) -> list[str]:
    name, verdict, numbers, allowed, source = cells
    badge = f'<b class="badge {BADGES.get(judgement.verdict, "undetermined")}">{verdict}</b>'
    link = re.sub(r"arXiv:(\d{4}\.\d{4,5})", r'<a href="https://arxiv.org/abs/\1">arXiv:\1</a>', source)
    name = f"<bdi>{name}</bdi><br><small>{escape(judgement.claim.says)}</small>"
    return [name, badge, numbers, allowed, link]
