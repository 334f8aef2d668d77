"""What was compared, and what was solved to make budgets equal."""

from __future__ import annotations

from html import escape
from typing import Any

from paddle_tfm import units
from paddle_tfm.comparison.report import recipe_words
from paddle_tfm.comparison.report.charted import ChartedSection
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.language import _
from paddle_tfm.pages.document import definitions
from paddle_tfm.protocols import Section
from paddle_tfm.recipe.sections.equal import value_at
from paddle_tfm.runs.sweep_files import NOT_REPRODUCIBLE, Solution, amount, read_solutions
from paddle_tfm.tabular import Column, Table, column
from paddle_tfm.units import plural

ENDED_EARLY = "{runs} ended before the step that was solved for (they diverged, or ran out of patience), and got less."


class Compared(Section):
    """What was compared: task, data, model and budget."""

    heading = "What was compared"
    summary = "task, data, model and budget"
    place = 200

    def text(self, facts: Facts) -> list[str]:
        """What the recipe says that it compares: a table is not read without it."""
        return [f"“{summary}”" for summary in _summaries(facts)]

    def html(self, facts: Facts) -> str:
        return definitions(_facts(facts))


def _facts(facts: Facts) -> list[tuple[str, str]]:
    comparison = facts.comparison
    signature = comparison.signature(comparison.metric)
    higher, lower = (
        _("{metric} on the {split} split, higher is better"),
        _("{metric} on the {split} split, lower is better"),
    )
    decided = (higher if comparison.higher_is_better else lower).format(
        metric=units.metric_name(comparison.metric), split=_(comparison.split)
    )
    sizes = [row.parameters for row in comparison.rows]
    size = f"{min(sizes):,}" if len(set(sizes)) == 1 else f"{min(sizes):,}{_(' to ')}{max(sizes):,}"
    known = recipe_words.described(
        facts.recipe,
        _summaries(facts),
        facts.about,
        facts.samples(),
        _("{number} parameters").format(number=size),
        _("training of {variant}").format(variant=facts.baseline) if facts.training()[1] else _("training"),
    )
    return [
        *known,
        (_("seeds"), escape(facts.seeds())),
        (_("decided by"), f"{escape(decided)}{f' <code>{escape(signature)}</code>' if signature else ''}"),
    ]


def _summaries(facts: Facts) -> list[str]:
    return sorted({_(str(recipe.get("summary", ""))) for recipe in facts.recipes.values()} - {""})


class Budgets(ChartedSection):
    """The setting that was solved for each variant before the training, and what it got beside the baseline."""

    heading = "Equal budgets"
    summary = "what was solved for each variant before the training"
    place = 210

    def applies(self, facts: Facts) -> bool:
        return bool(facts.once(_solutions))

    def tables(self, facts: Facts) -> dict[str, Table]:
        rows = list(facts.once(_solutions).items())
        columns = [
            column("variant", of=lambda row: row[0]),
            column("setting", "solved for", of=lambda row: row[1].setting),
            column("recipe", "in the recipe", right=True, of=lambda row: row[1].was),
            column("solved", "trained with", right=True, of=lambda row: row[1].value),
            _amount("here", "reached"),
            _amount("baseline", "wanted"),
            column("percent", "apart", lambda value: f"{value:+.1f}%".replace("-", "−"), right=True, of=_percent),
        ]
        return {
            "budgets": Table(
                columns, rows, _("What was set for each variant, so that its budget equals the baseline's")
            )
        }

    def notes(self, facts: Facts) -> list[str]:
        solutions = facts.once(_solutions)
        early = [
            run
            for variant, each in solutions.items()
            for run in facts.groups[variant]
            if each.setting == "train.steps" and run.results["steps"] < each.value
        ]
        remarks = [ENDED_EARLY.format(runs=plural(len(early), "run"))] if early else []
        return remarks + ([NOT_REPRODUCIBLE] if any(each.budget == "seconds" for each in solutions.values()) else [])

    def text(self, facts: Facts) -> list[str]:
        return [each.sentence(variant) for variant, each in facts.once(_solutions).items()] + self.notes(facts)

    def data(self, facts: Facts) -> dict[str, Any]:
        return {"variants": self.tables(facts)["budgets"].records(), "remarks": self.notes(facts)}


def _solutions(facts: Facts) -> dict[str, Solution]:
    """Variant → what was solved for it: of the sweep that its first run belongs to, if that run was trained with it."""
    solutions = {}
    for variant, runs in facts.groups.items():
        solution = read_solutions(runs[0].folder.parent.parent).get(runs[0].variant)
        if solution is not None and value_at(facts.recipes[variant], solution.setting) == solution.value:
            solutions[variant] = solution
    return solutions


def _amount(key: str, name: str) -> Column[tuple[str, Solution]]:
    return Column(
        key,
        lambda row: amount(row[1].budget, getattr(row[1], name)),
        lambda row: {key: getattr(row[1], name)},
        right=True,
    )


def _percent(row: tuple[str, Solution]) -> float:
    return 100 * (row[1].reached / row[1].wanted - 1) if row[1].wanted else 0.0
