"""With which weights runs began that began with those of another run."""

from __future__ import annotations

from typing import Any

from paddle_tfm.comparison.report.charted import ChartedSection
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.language import _
from paddle_tfm.runs.carried import Start, grouped
from paddle_tfm.tabular import Table, column


class Carried(ChartedSection):
    """What was carried over from another run, what was newly drawn, and what of that run had no place."""

    heading = "What was carried over"
    summary = "with which weights of another run each variant began, and which were newly drawn"
    place = 207

    def applies(self, facts: Facts) -> bool:
        return any(self.data(facts).values())

    def tables(self, facts: Facts) -> dict[str, Table]:
        """A row for each variant; of one that began with nothing, a row that says so."""
        rows = [{"variant": variant, **_row(began)} for variant, began in self.data(facts).items()]
        columns = [
            column("variant"),
            column("run", "weights of"),
            column("carried", "carried over", right=True),
            column("drawn", "newly drawn", prose=True),
            column("left_out", "left out", prose=True),
            column("redrawn", "drawn again", right=True),
            column("pieces", prose=True),
        ]
        return {"carried": Table(columns, rows, _("What each variant began with"))}

    def data(self, facts: Facts) -> dict[str, dict[str, Any]]:
        """variant → what its first run began with; empty where that was nothing."""
        return {variant: runs[0].results.get("start") or {} for variant, runs in facts.groups.items()}


def _row(began: dict[str, Any]) -> dict[str, str]:
    if not began:
        return {"run": _("none"), "carried": "", "drawn": _("everything"), "left_out": "", "redrawn": "", "pieces": ""}
    start = Start(**began)
    pieces = [f"{_(side)}: +{n['added']:,} −{n['removed']:,}" for side, n in began["pieces"].items()]
    return {
        "run": f"{start.run} ({start.checkpoint}, {start.step:,})",
        "carried": f"{100 * start.carried / max(1, start.numbers):.1f}%",
        "drawn": ", ".join(grouped(start.drawn)),
        "left_out": ", ".join(grouped(start.left_out)) + (f" ({start.lost:.2%})" if start.left_out else ""),
        "redrawn": f"{start.redrawn / max(1, start.carried):.2%}" if start.redrawn else "",
        "pieces": ", ".join(pieces),
    }
