"""Which seeds a sweep added, and why: what each of its looks saw and decided, computed again from finished runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from paddle_tfm.comparison.runs import Result, grouped, pairs
from paddle_tfm.comparison.statistics import AtLook, Verdict, at_look
from paddle_tfm.comparison.table import Comparison, compare
from paddle_tfm.comparison.verdict import verdict_text
from paddle_tfm.recipe.seeds import SeedPlan


@dataclass(frozen=True)
class Decision:
    """What a look after `seeds` seeds decided of a variant that was open: its verdict with the seeds so far, None where
    nothing can be compared; the test of this look alone, where it is a t test; and what came of it in words."""

    seeds: int
    variant: str
    difference: Verdict | None
    test: AtLook | None
    decided: str

    @property
    def is_settled(self) -> bool:
        """Whether the variant got no more seeds because the question was answered."""
        return self.difference is not None and self.difference.is_settled


def decisions(comparison: Comparison) -> list[Decision]:
    """Look by look, and the variants in the order of the table; empty where seeds were listed.

    A look sees what the sweep saw then (`sweep.stages`): the seeds up to it, of each variant that was open. Of looks
    after every seed come the first and those after which a variant got no more.
    """
    plan = comparison.question.plan
    return [] if plan is None else list(_decisions(comparison, plan))


def _decisions(comparison: Comparison, plan: SeedPlan) -> Iterator[Decision]:
    groups = grouped(comparison.runs)
    base = str(comparison.baseline)
    open_variants = [row.variant for row in comparison.rows if row.variant != base]
    seen: list[Result] = []
    for size in _sizes(plan, comparison):
        before = max((run.seed for run in seen), default=0)
        seen += [run for name in (base, *open_variants) for run in groups[name] if before < run.seed <= size]
        if not open_variants or any(size not in {run.seed for run in groups[name]} for name in (base, *open_variants)):
            return  # all was settled, or the look is yet to come
        then = _at(comparison, seen)
        made = [_decision(then, name, size, size >= plan.at_most) for name in open_variants]
        yield from made
        open_variants = [decision.variant for decision in made if not decision.is_settled]


def _sizes(plan: SeedPlan, comparison: Comparison) -> list[int]:
    """The looks that are told."""
    ends = {max(row.seeds) for row in comparison.rows}
    return plan.looks or [size for size in plan.stages if size == plan.stages[0] or size in ends]


def _at(comparison: Comparison, seen: Sequence[Result]) -> Comparison:
    """The comparison of the runs that a look saw."""
    among = {id(run) for run in seen}
    runs = [run for run in comparison.runs if id(run) in among]
    asked = comparison.metric, comparison.baseline, comparison.question
    return compare(runs, comparison.name, comparison.folder, *asked)


def _decision(then: Comparison, variant: str, size: int, is_last: bool) -> Decision:
    """What a look saw of one variant, `then`, and what came of it."""
    difference = next(row.difference for row in then.rows if row.variant == variant)
    groups = grouped(then.runs)
    values = pairs(groups[variant], groups[str(then.baseline)], then.metric)
    test = at_look(values, then.question.rule(), difference.level) if difference else None
    if difference is not None and difference.is_settled:
        return Decision(size, variant, difference, test, f"settled: {verdict_text(then, difference)}")
    obstacle = then.obstacles.get(variant)
    why = "open" if difference else obstacle.words if obstacle else "no seed in common"
    return Decision(size, variant, difference, test, f"{why}; {'no more are allowed' if is_last else 'gets more'}")
