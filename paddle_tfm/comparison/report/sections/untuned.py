"""Without tuning: the verdicts on the same seeds with the recipe's own values, and which of them change."""

from __future__ import annotations

import math
from typing import Any

from paddle_tfm import units
from paddle_tfm.comparison.columns import around
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.report.tuning_record import untuned
from paddle_tfm.comparison.table import Comparison, Row
from paddle_tfm.comparison.verdict import change, verdict_text
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Column, Table

CHANGES = "changes with tuning"


class Untuned(Section):
    """Each verdict beside the one that the recipe's own values give, on the same seeds."""

    heading = "Without tuning"
    place = 165

    def applies(self, facts: Facts) -> bool:
        """Whether runs with the recipe's own values are there (`tune: {untuned: true}`)."""
        return facts.once(_own) is not None

    def tables(self, facts: Facts) -> dict[str, Table]:
        """A row for each variant."""
        own = facts.once(_own)
        return {} if own is None else {"untuned": _table(facts.comparison, own)}

    def text(self, facts: Facts) -> list[str]:
        """A line for each verdict that changes; one where none does."""
        own = facts.once(_own)
        if own is None:
            return []
        lines = []
        for row in facts.comparison.rows:
            before, after = _verdict(own, row.variant), _verdict(facts.comparison, row.variant)
            if _changes(before, after):
                lines.append(f"untuned  {row.variant} {before}, and tuned {after}: the verdict {CHANGES}")
        where = " at the largest size" if facts.comparison.smaller else ""
        return lines or [f"untuned  no verdict{where} changes with tuning"]

    def data(self, facts: Facts) -> dict[str, Any]:
        """The verdicts, and which of them change."""
        own = facts.once(_own)
        rows = [] if own is None else facts.comparison.rows
        return {row.variant: _record(facts.comparison, own, row.variant) for row in rows if own is not None}


def _own(facts: Facts) -> Comparison | None:
    """The comparison of the runs with the recipe's own values."""
    return untuned(facts.comparison)


def _row(comparison: Comparison, variant: str) -> Row | None:
    return next((row for row in comparison.rows if row.variant == variant), None)


def _verdict(comparison: Comparison, variant: str) -> str:
    """The verdict on a variant in a word; "" of the baseline, and where there is none."""
    row = _row(comparison, variant)
    return verdict_text(comparison, row.difference) if row and row.difference else ""


def _changes(before: str, after: str) -> bool:
    return bool(before and after) and before != after


def _record(comparison: Comparison, own: Comparison, variant: str) -> dict[str, object]:
    row = _row(own, variant)
    mean = math.nan if row is None else row.mean[own.metric]
    before, after = _verdict(own, variant), _verdict(comparison, variant)
    changes = _changes(before, after)
    return {"untuned": before, "tuned": after, "changes": changes, "mean": mean if math.isfinite(mean) else None}


def _table(comparison: Comparison, own: Comparison) -> Table[Row]:
    def mean(of: Comparison, variant: str) -> str:
        row = _row(of, variant)
        return "–" if row is None else around(of, of.metric, row)

    def said(of: Comparison, variant: str) -> str:
        row = _row(of, variant)
        if variant == comparison.baseline or row is None or row.difference is None:
            return "baseline" if variant == comparison.baseline else "–"
        return f"{verdict_text(of, row.difference)}: {change(of, row.difference)}"

    def flag(row: Row) -> str:
        return CHANGES if _changes(_verdict(own, row.variant), _verdict(comparison, row.variant)) else ""

    def column(heading: str, text: Any, prose: bool = False) -> Column[Row]:
        return Column(heading, text, lambda row: {}, right=not prose, prose=prose)

    columns = [
        Column[Row](
            "variant",
            lambda row: row.variant,
            lambda row: {"variant": row.variant, **_record(comparison, own, row.variant)},
        ),
        column("untuned", lambda row: mean(own, row.variant)),
        column("verdict", lambda row: said(own, row.variant), prose=True),
        column("tuned", lambda row: mean(comparison, row.variant)),
        column("verdict", lambda row: said(comparison, row.variant), prose=True),
        column("", flag, prose=True),
    ]
    what = f"{comparison.split} {units.metric_name(comparison.metric)}"
    return Table(columns, comparison.rows, f"{what} with the recipe's own values, and with those that were chosen")
