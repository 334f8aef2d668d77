"""Claims: what the recipe said before its first run, and what the runs say of it."""

from __future__ import annotations

import re
from html import escape

from paddle_tfm.comparison.claims import Judgement, claimed, measured, subject
from paddle_tfm.comparison.facts import Facts
from paddle_tfm.comparison.statistics import CONFIDENCE
from paddle_tfm.pages.document import table

BADGES = {"reproduced": "better", "not reproduced": "worse"}  # verdict → the look of a badge


def html(facts: Facts) -> str:
    """A row for each claim, and the rule that decided."""
    claims = facts.comparison.claims
    if claims is None:
        return ""
    rows = [_row(judgement) for judgement in claims.judgements]
    header = ["claim", "verdict", "measured", "claimed", "source"]
    caption = "What the recipe claims, and what its runs say of it."
    rule = (
        f"A claim is reproduced where the whole {CONFIDENCE:.0%} interval (Student's t, over seeds) lies within what "
        "it allows, not reproduced where all of it lies outside, and else undetermined."
    )
    remark = f"<p><strong>{escape(claims.remark())}</strong></p>" if claims.remark() else ""
    return f'{remark}{table(caption, header, rows, texts=range(5))}<p class="note">{escape(rule)}</p>'


def _row(judgement: Judgement) -> list[str]:
    claim, unit = judgement.claim, judgement.unit
    badge = f'<b class="badge {BADGES.get(judgement.verdict, "undetermined")}">{escape(judgement.verdict)}</b>'
    source = re.sub(r"arXiv:(\d{4}\.\d{4,5})", r'<a href="https://arxiv.org/abs/\1">arXiv:\1</a>', escape(claim.source))
    name = f"<bdi>{escape(judgement.name)}</bdi><br><small>{escape(claim.says)}</small>"
    numbers = f"{escape(subject(claim))}: {escape(measured(judgement))}"
    return [name, badge, numbers, escape(claimed(claim, unit)), source]
