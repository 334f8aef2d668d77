"""The comparison of a recipe's runs: all that are finished, at the end or at a look before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paddle_tfm.comparison.question import Question
from paddle_tfm.comparison.runs.finished import collect
from paddle_tfm.comparison.table import Comparison, compare
from paddle_tfm.comparison.verdict import verdict_text
from paddle_tfm.units import listed, metric_and_test, plural

if TYPE_CHECKING:
    from paddle_tfm.protocols import Cell
    from paddle_tfm.recipe.expansion import Recipe


def compare_recipe(recipe: Recipe, runs: Iterable[Path], folder: Path) -> Comparison:
    """The finished `runs` of `recipe`, judged as it asks."""
    metric, baseline = metric_and_test(recipe.data["evaluate"]["best"])[0], recipe.data.get("baseline")
    return compare(collect(runs), recipe.name, folder, metric, baseline, Question.of(recipe))


def undecided(
    recipe: Recipe, folder: Path, report: Callable[[str], None] = lambda text: None
) -> Callable[[Sequence[Cell]], set[str]]:
    """What a sweep asks at each look: finished cells → the variants that need more seeds, with the
    baseline; none where all is settled. `report` gets a sentence."""

    def at_look(cells: Sequence[Cell]) -> set[str]:
        comparison = compare_recipe(recipe, [cell.folder for cell in cells], folder)
        report(_look(comparison))
        rows = [row for row in comparison.rows if row.variant != comparison.baseline]
        names = {row.variant for row in rows if row.difference is None or not row.difference.is_settled}
        return names | {comparison.baseline} if names else set()

    return at_look


def _look(comparison: Comparison) -> str:
    """What a look before the end says: `After 3 seeds: “b” is worse; “c” and “d” need more.`"""
    others = [(row.variant, row.difference) for row in comparison.rows if row.variant != comparison.baseline]
    settled = [f"“{name}” is {verdict_text(comparison, item)}" for name, item in others if item and item.is_settled]
    open_names = [f"“{name}”" for name, item in others if item is None or not item.is_settled]
    seeds = plural(max(len(row.seeds) for row in comparison.rows), "seed")
    if not open_names:
        return f"After {seeds} all is settled: {', '.join(settled)}."
    go_on = f"{listed(open_names)} need{'s' if len(open_names) == 1 else ''} more"
    return f"After {seeds}: {'; '.join(filter(None, [', '.join(settled), go_on]))}."
