"""Seeds that are added only while a question is open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from pydantic import ValidationError

from paddle_tfm.errors import UserError
from paddle_tfm.recipe.expansion import Recipe
from paddle_tfm.recipe.sections.seeds import SeedPlan
from paddle_tfm.recipe.yaml_lines import recipe_text
from paddle_tfm.runs.sweep_files import read_command, read_looks
from paddle_tfm.sweep.cells import Cell

Undecided = Callable[[Sequence[Cell]], set[str]]


def stages(
    cells: Sequence[Cell], plan: SeedPlan | None, undecided: Undecided, beside: Sequence[Cell] = ()
) -> Iterator[list[Cell]]:
    """Cells in the order in which they are due: before each look of `plan` the seeds up to it, of the variants that are
    open. A list of seeds is one stage.

    When the next stage is asked for, the cells of the ones before must be finished. A decision sees these alone, in the
    order of `cells`, and no run of a later seed: it is the same whoever trained them, and however often that stopped.

    Args:
        undecided: finished cells → the variants that need more seeds, with the baseline; none where all is settled.
        beside: cells that decide nothing: each is due with the one of its variant and seed.
    """
    if plan is None:
        yield [*cells, *beside]
        return
    due: list[Cell] = []
    open_variants = {cell.spec.variant for cell in cells}
    for before, size in pairwise([0, *plan.looks]):
        stage, others = (
            [cell for cell in some if before < cell.spec.seed <= size and cell.spec.variant in open_variants]
            for some in (cells, beside)
        )
        if not stage:
            return
        due += stage
        yield [*stage, *others]
        if size < plan.at_most:
            open_variants &= undecided(due)


def _may_have_looked(plan: dict, cells: Iterable[Cell]) -> bool:
    """Whether what a look takes of a variant is there: all its runs up to the first. (Of any: others may be new.)"""
    try:
        first = SeedPlan.model_validate(plan).looks[0]
    except ValidationError:  # damaged
        return any(cell.is_finished for cell in cells)
    variants: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.spec.seed <= first:
            variants.setdefault(cell.spec.variant, []).append(cell)
    return any(all(cell.is_finished for cell in runs) for runs in variants.values())


def require_same_looks(recipe: Recipe, folder: Path, cells: Iterable[Cell]) -> None:
    """A look that was taken counts in every interval.

    Raises:
        UserError: the sweep in `folder` has taken a look, and was to look after other numbers of seeds; more seeds may
            be listed where they were listed (`comparison.statistics.Listed`).
    """
    before, plan = (read_command(folder).question or {}).get("seeds"), recipe.seed_plan()
    now = recipe.data["seeds"] if plan is None else plan.model_dump(exclude_defaults=True)
    if isinstance(before, dict):
        has_looked, was = before != now and _may_have_looked(before, cells), recipe_text(before)
    else:
        has_looked, was = plan is not None and bool(read_looks(folder)), "a list"
    if has_looked:
        raise UserError(
            f"{folder} cannot be resumed: seeds was {was} and is {recipe_text(now)}, but looks that "
            "are taken count in every interval. Undo that, or use --out DIR for another place (in Python out=DIR)"
        )
