"""Which seeds were added, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from typing import Any

from paddle_tfm import units
from paddle_tfm.comparison.added import Decision, decisions
from paddle_tfm.comparison.columns import adjustment
from paddle_tfm.comparison.facts import Facts
from paddle_tfm.comparison.statistics import SIGNIFICANCE
from paddle_tfm.comparison.table import Comparison
from paddle_tfm.comparison.verdict import change
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Column, Table
from paddle_tfm.units import plural


class Seeds(Section):
    """What each look at the seeds so far decided: which variants were open, the test, and who got more seeds."""

    heading = "Seeds added, and why"
    place = 130

    def applies(self, facts: Facts) -> bool:
        """Whether the recipe adds seeds, and a look was taken."""
        return bool(facts.once(decisions_of))

    def tables(self, facts: Facts) -> dict[str, Table]:
        """A row for each look and each variant that was open at it."""
        return {"seeds-added": _table(facts)}

    def html(self, facts: Facts) -> str:
        """The table, and what its numbers are."""
        return f'{_table(facts).html()}<p class="note">{escape(_note(facts.comparison))}</p>'

    def text(self, facts: Facts) -> Sequence[str]:
        """How many seeds each variant got."""
        last = {item.variant: item for item in facts.once(decisions_of)}
        parts = [f"“{name}” {plural(item.seeds, 'seed')} ({item.decided})" for name, item in last.items()]
        return [f"Seeds added: {', '.join(parts)}."]

    def data(self, facts: Facts) -> Mapping[str, Any]:
        """The rows of the table."""
        return {"looks": _table(facts).records()}


def decisions_of(facts: Facts) -> list[Decision]:
    """What each look decided; none where seeds were listed, or another metric decided then."""
    deciding = facts.section("evaluate").get("best", facts.comparison.metric)
    return decisions(facts.comparison) if deciding == facts.comparison.metric else []


def _note(comparison: Comparison) -> str:
    return (
        "A look saw the seeds up to it, of the variants that were open then. “p” is the two-sided paired t test of "
        "that look alone; “must be below” is what makes all tests together wrong in at most "
        f"{SIGNIFICANCE:.0%} of comparisons{adjustment(comparison)}. A settled variant got no more seeds. Where a "
        "pair has a run that diverged, a look is a test of signs and has neither number."
    )


def _table(facts: Facts) -> Table[Decision]:
    comparison = facts.comparison
    unit = comparison.unit(comparison.metric)

    def difference(item: Decision) -> str:
        return change(comparison, item.difference) if item.difference else "–"

    columns = [
        Column[Decision]("seeds", lambda item: str(item.seeds), lambda item: {"seeds": item.seeds}, right=True),
        Column[Decision]("variant", lambda item: item.variant, lambda item: {"variant": item.variant}),
        Column[Decision]("difference", difference, _numbers),
        Column[Decision]("p", partial(_test, "p"), lambda item: {"p": item.test and item.test.p}, right=True),
        Column[Decision](
            "must be below", partial(_test, "bound"), lambda item: {"bound": item.test and item.test.bound}, right=True
        ),
        Column[Decision]("decided", lambda item: item.decided, lambda item: {"decided": item.decided}),
    ]
    points = ", points" if unit else ""
    title = f"Looks at {comparison.split} {units.metric_name(comparison.metric)}{points}, and what they decided"
    return Table(columns, facts.once(decisions_of), title)


def _test(name: str, item: Decision) -> str:
    """A p-value to two digits: `0.031`; 0 is one that is too small to be told."""
    if item.test is None:
        return "–"
    value = getattr(item.test, name)
    return f"{value:.2g}" if value >= 1e-4 else "< 0.0001"


def _numbers(item: Decision) -> dict[str, object]:
    verdict = item.difference
    names = ("mean", "low", "high", "p", "verdict")
    numbers = {name: getattr(verdict, name) if verdict else None for name in names}
    return {"p_adjusted" if name == "p" else name: value for name, value in numbers.items()}
