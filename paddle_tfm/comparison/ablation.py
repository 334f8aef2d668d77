"""What a grid of factors says: the score of each cell, and the effects of levels and their interactions, whose
intervals hold for all at once; and which runs are those of a full model without a part (`ablate`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from paddle_tfm import units
from paddle_tfm.comparison.runs.finished import Result, grouped, of_common_seeds, sweep_of
from paddle_tfm.comparison.runs.sizes import written
from paddle_tfm.comparison.statistics import Mean, Verdict, decide, mean_interval
from paddle_tfm.comparison.table import Comparison
from paddle_tfm.language import _, counted, enumerated
from paddle_tfm.recipe.sections.ablate import FULL
from paddle_tfm.runs.sweep_files import Command, read_command

Levels = tuple[str, ...]  # a level of each factor, in the order of the factors


class Effect(NamedTuple):
    """What changing one factor (main effect), or two (interaction), does: factor → the level, against the baseline's.

    `share`: the variance of a seed's contrast, in variances of a single run, if the runs of a seed are independent.
    """

    levels: Mapping[str, str]
    share: float

    @property
    def is_interaction(self) -> bool:
        """Whether it is of two factors."""
        return len(self.levels) > 1


def effects(factors: Mapping[str, Sequence[str]], base: Mapping[str, str]) -> list[Effect]:
    """All main effects, then the interactions of two factors; those of three and more are not among them. With L_f
    levels of factor f these are Σ (L_f − 1) and Σ over pairs (L_f − 1)(L_g − 1)."""
    family = []
    for several in (*((factor,) for factor in factors), *combinations(factors, 2)):
        averaged = math.prod(len(levels) for factor, levels in factors.items() if factor not in several)
        others = [[level for level in factors[factor] if level != base[factor]] for factor in several]
        family += [Effect(dict(zip(several, levels)), 2 ** len(several) / averaged) for levels in product(*others)]
    return family


def contrast(cells: Sequence[Mapping[str, str]], base: Mapping[str, str], effect: Effect) -> np.ndarray:
    """The weights [cells] of an effect: Σ weight · score is the difference between a level and the baseline's, averaged
    over the levels of all other factors; of two factors the difference of such differences,

        (y[l, m] − y[b, m]) − (y[l, c] − y[b, c])    with b and c the baseline's levels.
    """
    sign = np.array([_sign(cell, base, effect) for cell in cells], dtype=np.float64)
    return sign / ((sign > 0).sum() / (2 ** (len(effect.levels) - 1)))


def _sign(cell: Mapping[str, str], base: Mapping[str, str], effect: Effect) -> int:
    signs = [(cell[factor] == level) - (cell[factor] == base[factor]) for factor, level in effect.levels.items()]
    return math.prod(signs)


def verdicts_on(
    scores: np.ndarray, looks: Sequence[int], weights: Sequence[np.ndarray], comparison: Comparison
) -> list[Verdict]:
    """A verdict on each contrast, of `scores` [seeds, cells] and the `weights` [cells] of each. A seed gives each
    contrast one number; its mean over seeds is tested as a difference to a baseline is (`decide`), with the looks that
    there were, all of them at once: P(any interval misses its true value) ≤ 5%."""
    unit, higher, question = comparison.unit(comparison.metric), comparison.higher_is_better, comparison.question
    smallest = None if question.smallest_effect is None else units.stored(question.smallest_effect, unit)
    pairs = {i: [(float(value), 0.0) for value in scores @ weight] for i, weight in enumerate(weights)}
    verdicts = decide(pairs, question.rule(looks), higher, smallest, at_once=True)
    lowest, highest = units.bounds(unit, higher)
    return [
        _within(verdicts[i], float(weight[weight > 0].sum()) * (highest - lowest)) for i, weight in enumerate(weights)
    ]


def _within(verdict: Verdict, largest: float) -> Verdict:
    """With an interval that ends where the metric does: that of an interaction may be twice as wide."""
    low, high = verdict.low, verdict.high
    return replace(
        verdict,
        low=low if low is None else max(low, -largest),
        high=high if high is None else min(high, largest),
    )


@dataclass(frozen=True)
class Grid:
    """`factors`: path → its levels; `base`: the baseline's. `cells`: levels → the runs there, which may be none.
    `seeds` are those of every cell, by which `effects` are tested: none where `no_effects` says why."""

    factors: Mapping[str, Sequence[str]]
    base: Mapping[str, str]
    cells: Mapping[Levels, Sequence[Result]]
    seeds: Sequence[int]
    effects: Sequence[tuple[Effect, Verdict]]

    def mean(self, levels: Levels, metric: str) -> Mean | None:
        """The mean of a cell with its own 95% interval; None where no run of it has a value."""
        values = [value for run in self.cells[levels] if math.isfinite(value := run.metric(metric))]
        return mean_interval(values) if values else None

    def diverged(self, levels: Levels) -> str:
        """`1 of 3 diverged`; "" where none did."""
        lost = sum(bool(run.results.get("diverged")) for run in self.cells[levels])
        return _("{number} of {runs} diverged").format(number=lost, runs=len(self.cells[levels])) if lost else ""


def command_of(comparison: Comparison) -> Command:
    """What is recorded of the one sweep that all runs are of; nothing of several."""
    sweep = sweep_of(run.folder for run in comparison.runs)
    return read_command(sweep) if sweep else Command()


def grid(comparison: Comparison) -> Grid | None:
    """The grid that the runs of a comparison are of, two factors or more, each with the levels that are here; None
    where they are of none."""
    groups = {written(runs[0]): runs for runs in grouped(comparison.runs).values()}
    of_all = command_of(comparison).factors
    here = {path: {name: level for name, level in at.items() if name in groups} for path, at in of_all.items()}
    recorded = {path: at for path, at in here.items() if len(set(at.values())) > 1}
    base = next((written(run) for run in comparison.runs if run.variant == comparison.baseline), "")
    if len(recorded) < 2 or any(base not in at for at in recorded.values()):
        return None
    factors = {path: list(dict.fromkeys(at.values())) for path, at in recorded.items()}
    names = {tuple(at[name] for at in recorded.values()): name for name in next(iter(recorded.values()))}
    cells = {levels: groups.get(names.get(levels, ""), []) for levels in product(*factors.values())}
    bases = {path: at[base] for path, at in recorded.items()}
    return _with_effects(comparison, Grid(factors, bases, cells, [], []))


def no_effects(comparison: Comparison, here: Grid) -> str:
    """Why the effects of a grid are not computed; "" where they are. They take cells that all have runs, which can be
    compared and did not diverge, of two seeds."""
    missing = [f"“{words(levels)}”" for levels, runs in here.cells.items() if not runs]
    if missing:
        text = _("No effect is computed: there is no finished run of {cells}.")
        others = _("others")
        return text.format(cells=enumerated([*missing[:2], *([others] if len(missing) > 2 else [])]))
    if comparison.obstacles:
        names = enumerated(f"“{name}”" for name in comparison.obstacles)
        return _("No effect is computed: {names} cannot be compared with the others.").format(names=names)
    if lost := sum(run.outcome(comparison.metric) is None for run in comparison.runs):
        text = _("No effect is computed: {runs} diverged, and the mean of the others is not a fair one.")
        return text.format(runs=counted(lost, "run"))
    if len(of_common_seeds(list(here.cells.values()), comparison.metric)[0]) < 2:
        return _("No effect is computed: it needs two seeds that every cell has.")
    return ""


def left_out(comparison: Comparison, here: Grid) -> str:
    """Which seeds the effects are not of; "" where they are of all."""
    left = sorted({run.seed for run in comparison.runs} - set(here.seeds))
    text = _("Not every cell has a run of seed {seeds}: effects are of the other seeds.")
    return text.format(seeds=enumerated(left)) if left and here.effects else ""


def _with_effects(comparison: Comparison, here: Grid) -> Grid:
    """With the effects, where they can be computed."""
    if no_effects(comparison, here):
        return here
    whole, looks = of_common_seeds(list(here.cells.values()), comparison.metric)
    scores = np.array([[run.metric(comparison.metric) for run in runs] for runs in whole])
    cells = [dict(zip(here.factors, levels)) for levels in here.cells]
    all_effects = effects(here.factors, here.base)
    verdicts = verdicts_on(scores, looks, [contrast(cells, here.base, each) for each in all_effects], comparison)
    return replace(here, seeds=sorted(runs[0].seed for runs in whole), effects=list(zip(all_effects, verdicts)))


def words(levels: Sequence[str]) -> str:
    """A combination of levels: `rms × alibi`."""
    return " × ".join(levels)


def name_of(path: str) -> str:
    """A factor as people call it: `norm` of `model.norm`."""
    return path.partition(".")[2] or path


def effect_words(here: Grid, effect: Effect) -> str:
    """`norm: rms against layer`; `norm × position: rms with alibi`."""
    what = words([name_of(path) for path in effect.levels])
    if effect.is_interaction:
        return _("{what}: {levels}").format(what=what, levels=_(" with ").join(effect.levels.values()))
    [(path, level)] = effect.levels.items()
    return _("{what}: {level} against {base}").format(what=what, level=level, base=here.base[path])


def method(here: Grid) -> Iterator[str]:
    """How the effects come about, and what they mean."""
    number, several = len(here.effects), len(here.factors) > 2
    averaged = _("all combinations of the other factors") if several else _("all levels of the other factor")
    yield _(
        "A main effect is the difference to the baseline's level, averaged over {averaged}; an interaction is the"
        " effect of two changes together beyond the sum of both. Each seed gives one number, and Student's t "
        "tests their mean. The intervals hold for all {number} effects at once (Bonferroni): in at most 5% of "
        "grids one of them misses. The differences to the baseline above have 5% of their own."
    ).format(averaged=averaged, number=number)
    if several:
        yield _("Interactions of three factors or more are not tested.")
    if any(effect.is_interaction and verdict.verdict in ("better", "worse") for effect, verdict in here.effects):
        yield _("Where factors interact, a main effect describes no single cell: read the cells.")


def leave_one_out(comparison: Comparison) -> dict[str, str]:
    """Row of a comparison → what it is, in the order of the recipe: `full`, `− norm: rms → layer`. Empty where the runs
    are of no `ablate`, or the baseline is not the full model."""
    lacking = command_of(comparison).taken_away
    rows = {written(runs[0]): row for row, runs in grouped(comparison.runs).items()}
    if not lacking or rows.get(FULL) != comparison.baseline:
        return {}
    named = {FULL: FULL, **{variant: f"− {text}" for variant, text in lacking.items()}}
    return {rows[variant]: text for variant, text in named.items() if variant in rows}
