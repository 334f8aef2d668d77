"""Which seeds were added, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paddle_tfm import units
from paddle_tfm.comparison.columns import adjustment
from paddle_tfm.comparison.report.charted import ChartedSection
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.runs.finished import Result, grouped
from paddle_tfm.comparison.statistics import SIGNIFICANCE, Verdict
from paddle_tfm.comparison.table import Comparison, compare
from paddle_tfm.comparison.verdict import change, verdict_text
from paddle_tfm.language import _
from paddle_tfm.recipe.sections.seeds import SeedPlan
from paddle_tfm.tabular import Column, Table, column
from paddle_tfm.units import plural


@dataclass(frozen=True)
class Decision:
    """What a look after `seeds` seeds decided of a variant that was open: its verdict with the seeds so far, None where
    nothing can be compared; and what came of it in words."""

    seeds: int
    variant: str
    difference: Verdict | None
    decided: str

    @property
    def is_settled(self) -> bool:
        """Whether the variant got no more seeds because the question was answered."""
        return self.difference is not None and self.difference.is_settled


def decisions(comparison: Comparison) -> list[Decision]:
    """Look by look, and the variants in the order of the table; empty where seeds were listed.

    A look sees what the sweep saw then (`sweep.added_seeds`): the seeds up to it, of each variant that was open.
    """
    plan = comparison.question.plan
    return [] if plan is None else list(_decisions(comparison, plan))


def _decisions(comparison: Comparison, plan: SeedPlan) -> Iterator[Decision]:
    groups = grouped(comparison.runs)
    base = comparison.baseline
    open_variants = [row.variant for row in comparison.rows if row.variant != base]
    seen: list[Result] = []
    for size in plan.looks:
        before = max((run.seed for run in seen), default=0)
        seen += [run for name in (base, *open_variants) for run in groups[name] if before < run.seed <= size]
        if not open_variants or any(size not in {run.seed for run in groups[name]} for name in (base, *open_variants)):
            return  # all was settled, or the look is yet to come
        then = _at(comparison, seen)
        made = [_decision(then, name, size, size >= plan.at_most) for name in open_variants]
        yield from made
        open_variants = [decision.variant for decision in made if not decision.is_settled]


def _at(comparison: Comparison, seen: Sequence[Result]) -> Comparison:
    """The comparison of the runs that a look saw."""
    among = {id(run) for run in seen}
    runs = [run for run in comparison.runs if id(run) in among]
    asked = comparison.metric, comparison.baseline, comparison.question
    return compare(runs, comparison.name, comparison.folder, *asked)


def _decision(then: Comparison, variant: str, size: int, is_last: bool) -> Decision:
    """What a look saw of one variant, `then`, and what came of it."""
    difference = next(row.difference for row in then.rows if row.variant == variant)
    if difference is not None and difference.is_settled:
        return Decision(size, variant, difference, f"settled: {verdict_text(then, difference)}")
    obstacle = then.obstacles.get(variant)
    why = "open" if difference else obstacle.words if obstacle else "no seed in common"
    return Decision(size, variant, difference, f"{why}; {'no more are allowed' if is_last else 'gets more'}")


class Seeds(ChartedSection):
    """What each look at the seeds so far decided: which variants were open, and who got more seeds."""

    heading = "Seeds added, and why"
    summary = "what each look at the seeds so far decided"
    place = 130

    def applies(self, facts: Facts) -> bool:
        """Whether the recipe adds seeds, and a look was taken."""
        return bool(facts.once(decisions_of))

    def tables(self, facts: Facts) -> dict[str, Table]:
        """A row for each look and each variant that was open at it."""
        return {"seeds-added": _table(facts)}

    def notes(self, facts: Facts) -> list[str]:
        return [
            _(
                "A look saw the seeds up to it, of the variants that were open then. All looks together are wrong in "
                "at most {share} of comparisons{adjustment}."
            ).format(share=f"{SIGNIFICANCE:.0%}", adjustment=adjustment(facts.comparison))
        ]

    def text(self, facts: Facts) -> Sequence[str]:
        last = {item.variant: item for item in facts.once(decisions_of)}
        parts = [f"“{name}” {plural(item.seeds, 'seed')} ({item.decided})" for name, item in last.items()]
        return [f"Seeds added: {', '.join(parts)}."]

    def data(self, facts: Facts) -> Mapping[str, Any]:
        return {"looks": _table(facts).records()}


def decisions_of(facts: Facts) -> list[Decision]:
    """What each look decided; none where seeds were listed, or another metric decided then."""
    deciding = facts.recipe.get("evaluate", {}).get("best", facts.comparison.metric)
    return decisions(facts.comparison) if units.metric_and_test(deciding)[0] == facts.comparison.metric else []


def _table(facts: Facts) -> Table[Decision]:
    comparison = facts.comparison

    def difference(item: Decision) -> str:
        return change(comparison, item.difference) if item.difference else "–"

    columns: list[Column[Decision]] = [
        column("seeds", right=True, of=lambda item: item.seeds),
        column("variant", of=lambda item: item.variant),
        Column("difference", difference, _numbers),
        column("decided", of=lambda item: item.decided),
    ]
    points = ", points" if comparison.unit(comparison.metric) else ""
    title = f"Looks at {comparison.split} {units.metric_name(comparison.metric)}{points}, and what they decided"
    return Table(columns, facts.once(decisions_of), title)


def _numbers(item: Decision) -> dict[str, object]:
    names = {"mean": "mean", "low": "low", "high": "high", "p_adjusted": "p", "verdict": "verdict"}
    return {key: getattr(item.difference, name, None) for key, name in names.items()}
