"""The comparison of a recipe's runs: all that are finished, at the end or at a look before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paddle_tfm.comparison.question import Question
from paddle_tfm.comparison.runs.finished import collect
from paddle_tfm.comparison.table import Comparison, compare
from paddle_tfm.comparison.verdict import look

if TYPE_CHECKING:
    from paddle_tfm.protocols import Cell
    from paddle_tfm.recipe.expansion import Recipe


def compare_recipe(recipe: Recipe, runs: Iterable[Path], folder: Path) -> Comparison:
    """The finished `runs` of `recipe`, judged as it asks."""
    metric, baseline = recipe.data["evaluate"]["best"], recipe.data.get("baseline")
    return compare(collect(runs), recipe.name, folder, metric, baseline, Question.of(recipe))


def undecided(
    recipe: Recipe, folder: Path, report: Callable[[str], None] = lambda text: None
) -> Callable[[Sequence[Cell]], set[str]]:
    """What a sweep asks at each look: finished cells → the variants that need more seeds, with the
    baseline; none where all is settled. `report` gets a sentence."""

    def at_look(cells: Sequence[Cell]) -> set[str]:
        comparison = compare_recipe(recipe, [cell.folder for cell in cells], folder)
        report(look(comparison))
        rows = [row for row in comparison.rows if row.variant != comparison.baseline]
        names = {row.variant for row in rows if row.difference is None or not row.difference.is_settled}
        return names | {str(comparison.baseline)} if names else set()

    return at_look
