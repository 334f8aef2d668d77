"""What was solved so that every variant got as much as the baseline."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.protocols import Section
from paddle_tfm.recipe.equal import value_at
from paddle_tfm.tabular import Column, Table, column
from paddle_tfm.train.solutions import NOT_REPRODUCIBLE, Solution, amount, read
from paddle_tfm.units import plural

ENDED_EARLY = "{runs} ended before the step that was solved for (they diverged, or ran out of patience), and got less."

OTHER_SIZE = "This is not so: runs of {variant} have {there} parameters, and equal.json says otherwise."


class Budgets(Section):
    """The setting that was solved for each variant before the training, and what it got beside the baseline."""

    heading = "Equal budgets"
    place = 210

    def applies(self, facts: Facts) -> bool:
        """Whether anything was solved."""
        return bool(facts.once(_solutions))

    def tables(self, facts: Facts) -> Mapping[str, Table]:
        """A row for each variant."""
        rows: list[dict[str, Any]] = [
            {
                "variant": variant,
                "setting": each.setting,
                "recipe": each.was,
                "solved": each.value,
                "here": each.reached,
                "baseline": each.wanted,
                "percent": 100 * (each.reached / each.wanted - 1) if each.wanted else 0.0,
                "budget": each.budget,
            }
            for variant, each in facts.once(_solutions).items()
        ]
        columns = [
            column("variant"),
            column("setting", "solved for"),
            column("recipe", "in the recipe", right=True),
            column("solved", "trained with", right=True),
            _amount("here"),
            _amount("baseline"),
            column("percent", "apart", lambda value: f"{value:+.1f}%".replace("-", "−"), right=True),
        ]
        return {"budgets": Table(columns, rows, "What each variant was given, so that it gets as much as the baseline")}

    def html(self, facts: Facts) -> str:
        """The table, and what must be known of it."""
        remarks = "".join(f"<p>{escape(line)}</p>" for line in _remarks(facts))
        return "".join(table.html() for table in self.tables(facts).values()) + remarks

    def text(self, facts: Facts) -> list[str]:
        """A line for each variant."""
        return [*(each.sentence(variant) for variant, each in facts.once(_solutions).items()), *_remarks(facts)]

    def data(self, facts: Facts) -> dict[str, Any]:
        """The table as numbers."""
        return {"variants": self.tables(facts)["budgets"].records(), "remarks": _remarks(facts)}


def _solutions(facts: Facts) -> dict[str, Solution]:
    """Variant → what was solved for it: of the sweep that its first run belongs to, if that run was trained with it."""
    solutions = {}
    for variant, runs in facts.groups.items():
        solution = read(runs[0].folder.parent.parent).get(runs[0].variant)
        if solution is not None and value_at(facts.recipes[variant], solution.setting) == solution.value:
            solutions[variant] = solution
    return solutions


def _remarks(facts: Facts) -> list[str]:
    solutions = facts.once(_solutions)
    early = [
        run
        for variant, each in solutions.items()
        for run in facts.groups[variant]
        if each.setting == "train.steps" and run.results["steps"] < each.value
    ]
    remarks = [ENDED_EARLY.format(runs=plural(len(early), "run"))] if early else []
    remarks += [
        OTHER_SIZE.format(variant=variant, there=f"{run.results['parameters']:,}")
        for variant, each in solutions.items()
        for run in facts.groups[variant][:1]
        if each.budget == "parameters" and run.results["parameters"] != each.reached
    ]
    return remarks + ([NOT_REPRODUCIBLE] if any(each.budget == "seconds" for each in solutions.values()) else [])


def _amount(key: str) -> Column[Mapping[str, Any]]:
    return Column(key, lambda row: amount(row["budget"], row[key]), lambda row: {key: row[key]}, right=True)
