"""Runs of a ladder by their size: which are of the largest, and what each cost to train."""

from __future__ import annotations

from collections.abc import Sequence

from paddle_tfm.comparison.runs.finished import Result
from paddle_tfm.model.size import training_flops
from paddle_tfm.recipe.sections.ladder import at, without_size


def size_of(run: Result) -> str | None:
    """The size at which a run was trained; None where its recipe has no ladder."""
    return run.results.get("size")


def flops_of(run: Result) -> float:
    """The floating-point operations of a run's training (`training_flops`); 0 where they are not known."""
    return training_flops(run.results.get("matrix_parameters") or 0, run.results.get("tokens") or 0)


def by_size(runs: Sequence[Result]) -> dict[str, list[Result]]:
    """Size → its runs, the smallest first; empty where not all runs have one, or what a size costs is not known."""
    groups: dict[str, list[Result]] = {}
    for run in runs:
        if (size := size_of(run)) is None:
            return {}
        groups.setdefault(size, []).append(run)
    # By the most that a run of it took: one that diverged ended early, in its first step before any token counted.
    most = {size: max(map(flops_of, group)) for size, group in groups.items()}
    return {size: groups[size] for size in sorted(groups, key=lambda size: most[size])} if all(most.values()) else {}


def at_largest(runs: Sequence[Result]) -> tuple[list[Result], list[Result]]:
    """The runs of the largest size and those of the smaller ones; without a ladder, all and none."""
    *smaller, largest = by_size(runs).values() or [list(runs)]
    return largest, [run for group in smaller for run in group]


def as_trained(baseline: str | None, runs: Sequence[Result]) -> str | None:
    """The name under which runs of one size have the baseline that a recipe names; another name stays as it is."""
    names, sizes = {run.variant for run in runs}, {size_of(run) for run in runs}
    if baseline is None or baseline in names or len(sizes) != 1:
        return baseline
    named = at(baseline, next(iter(sizes)))
    return named if named in names else baseline


def written(run: Result) -> str:
    """The variant of a run as its recipe calls it."""
    return without_size(run.variant, size_of(run))
