"""Which differences the seeds of a recipe can see, told before they are trained."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paddle_tfm import units
from paddle_tfm.comparison.ablation import effects, name_of, words
from paddle_tfm.comparison.question import Question
from paddle_tfm.comparison.runs.finished import collect, directions, grouped, of_common_seeds
from paddle_tfm.comparison.runs.trained_from import recipe_of
from paddle_tfm.comparison.statistics import SIGNIFICANCE, smallest_seen
from paddle_tfm.comparison.statistics.outlook import MOST
from paddle_tfm.errors import UserError
from paddle_tfm.language import _, counted
from paddle_tfm.recipe.differences import differences
from paddle_tfm.recipe.sections.seeds import all_seeds
from paddle_tfm.tabular import Column, Table, column

if TYPE_CHECKING:
    from paddle_tfm.recipe.expansion import Recipe


@dataclass(frozen=True)
class Scatter:
    """`deviation`: the standard deviation of a run's metric over seeds, beside what all variants share of a seed, by so
    many `runs`. `largest`: how far two values can be apart."""

    deviation: float
    runs: int
    unit: str
    largest: float


@dataclass(frozen=True)
class Seen:
    """`number` differences of a kind, of which so many `deviations` of a run are found with a chance of 80%; `seeds`
    that find one of a single deviation so, None: more than `MOST`."""

    what: str
    number: int
    deviations: float
    seeds: int | None


def seen(recipe: Recipe) -> list[Seen]:
    """What all seeds of a sound recipe can see: each family of differences at the level at which its first is tested.

    A difference of two runs has √2 standard deviations of a run, an average of it over k cells √(2 / k), an interaction
    √(4 / k): as far as the runs of a seed have nothing in common; what they have in common falls away (`Scatter`).
    """
    names = list(recipe.written_variants())
    seeds, rule = len(all_seeds(recipe.seed_plan() or recipe.data["seeds"])), Question.of(recipe).rule()
    base = str(recipe.data.get("baseline") or names[0])
    if len(names) < 2:
        return []

    def of(what: str, number: int, share: float, family: int) -> Seen:
        def smallest(size: int) -> float:
            return math.sqrt(share) * smallest_seen(size, rule, SIGNIFICANCE / family)

        needed = 2 + bisect_left(range(2, MOST + 1), -1.0, key=lambda size: -smallest(size))
        return Seen(what, number, smallest(seeds), needed if needed <= MOST else None)

    kinds = [of(_("a variant against {base}").format(base=base), len(names) - 1, 2, len(names) - 1)]
    recorded = recipe.factors()
    if len(recorded) < 2:
        return kinds
    factors = {path: list(dict.fromkeys(at.values())) for path, at in recorded.items()}
    family = effects(factors, {path: at[base] for path, at in recorded.items()})
    shares_of: dict[tuple[str, ...], list[float]] = {}
    for effect in family:
        shares_of.setdefault(tuple(effect.levels), []).append(effect.share)
    for paths, shares in shares_of.items():
        what = _("interaction {factors}") if len(paths) > 1 else _("main effect {factors}")
        what = what.format(factors=words([name_of(path) for path in paths]))
        kinds.append(of(what, len(shares), shares[0], len(family)))
    return kinds


def scatter(recipe: Recipe, folder: Path) -> Scatter | None:
    """How runs of this very recipe in `folder` scatter: the residual of score = variant + seed, over the seeds that all
    variants there have,

        s² = Σ (y_vs − ȳ_v − ȳ_s + ȳ)² / ((V − 1)(S − 1)).

    None where it takes more runs: two variants and two seeds.
    """
    recipes = {run.variant: run.data for run in recipe.runs()}
    try:
        runs = [run for run in collect([folder], lambda text: None) if run.variant in recipes]
    except UserError:
        return None
    one_of = {(run.variant, run.origin.settings): run for run in runs}  # one recipe is parsed for all of its seeds
    same = {key for key, run in one_of.items() if not differences(recipe_of(run.folder), recipes[run.variant])}
    groups = grouped([run for run in runs if (run.variant, run.origin.settings) in same])
    metric = str(recipe.data["evaluate"]["best"])
    whole = of_common_seeds(list(groups.values()), metric)[0] if len(groups) > 1 else []
    scores = np.array([[run.metric(metric) for run in each] for each in whole])
    if len(scores) < 2 or not np.isfinite(scores).all():
        return None
    rest = scores - scores.mean(0) - scores.mean(1, keepdims=True) + scores.mean()
    free = (scores.shape[0] - 1) * (scores.shape[1] - 1)
    unit = next((run.results["units"].get(metric, "") for each in whole for run in each), "")
    lowest, highest = units.bounds(unit, directions([whole[0][0]])[metric])
    return Scatter(math.sqrt(float((rest**2).sum()) / free), scores.size, unit, highest - lowest)


def power(recipe: Recipe, folder: Path) -> Table[Seen] | None:
    """What all seeds of a sound recipe can see, by recorded runs of it in `folder` where there are some; None where it
    compares nothing."""
    if not (rows := seen(recipe)):
        return None
    known = scatter(recipe, folder)

    def difference(row: Seen) -> float | None:
        return None if known is None or math.isinf(row.deviations) else row.deviations * known.deviation

    def text(row: Seen) -> str:
        value = difference(row)
        if known is None or value is None:
            return ""
        if value > known.largest:
            return _("none")
        return units.difference(value, known.unit, value).removeprefix("+")

    columns: list[Column[Seen]] = [
        column("what", "differences", of=lambda row: row.what),
        column("number", right=True, of=lambda row: row.number),
        column(
            "deviations",
            "smallest, in s",
            lambda value: _("none") if math.isinf(value) else f"{value:.2g}" if value < 10 else f"{value:.0f}",
            right=True,
            of=lambda row: row.deviations,
        ),
    ]
    if known is not None:
        columns.append(Column("that is", text, lambda row: {"difference": difference(row)}, right=True))
    columns.append(
        column(
            "seeds",
            "seeds for s",
            lambda value: f"{value}" if value else _("more than {number}").format(number=MOST),
            right=True,
            of=lambda row: row.seeds,
        )
    )
    plan, metric = recipe.seed_plan(), units.metric_name(str(recipe.data["evaluate"]["best"]))
    seeds = all_seeds(plan or recipe.data["seeds"])
    title = _(
        "Differences of {metric} that {seeds} detect with a chance of 80%; s: the standard deviation of a run over "
        "seeds, without what all variants of a seed share; “seeds for s” detect a difference as large as that"
    ).format(seeds=counted(len(seeds), "seed"), metric=metric)
    if known is None:
        title += _(" (two seeds of this recipe in {folder} would show it)").format(folder=folder)
    else:
        deviation = units.difference(known.deviation, known.unit).removeprefix("+")
        measured = _(", {deviation} in {runs} in {folder}")
        title += measured.format(deviation=deviation, runs=counted(known.runs, "run"), folder=folder)
    return Table(columns, rows, title)
