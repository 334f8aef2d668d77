"""Trials before the reported runs: the same points for every variant, the best of its own for each.

Nothing is remembered: which trials are due, and what was chosen, follows from the recipe and from the results of the
trials before, so that it is the same whoever trained them, and however often that stopped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from paddle_tfm.errors import UserError, unknown
from paddle_tfm.files import json_text, write_whole
from paddle_tfm.language import _
from paddle_tfm.recipe.expansion import Recipe, RunSpec
from paddle_tfm.recipe.sections.space import Axis, Point, points
from paddle_tfm.recipe.sections.trials import own, trial, tuned
from paddle_tfm.recipe.sections.tuning import RECORD, TuneSettings
from paddle_tfm.runs.forms import read_results
from paddle_tfm.sweep.cells import Cell
from paddle_tfm.units import metric_and_test

WORST = (-math.inf, -math.inf)


class Trial(NamedTuple):
    """A point that every variant tries. `round`: how often the space had been widened."""

    number: int
    round: int
    values: Point


class Score(NamedTuple):
    """What a trial of one variant reached on the validation split; None where it diverged. `rank`: higher is better.
    `stopped`: others of its variant were better after these `steps`, and continued."""

    value: float | None
    rank: tuple[float, float]
    steps: int
    stopped: bool


def read_score(folder: Path, metric: str, stopped: bool) -> Score:
    """What the trial in a folder reached.

    Raises:
        UserError: its results cannot be read.
    """
    results = read_results(folder, ("valid", "directions", "diverged", "steps"))
    value, loss = (results["valid"].get(name) for name in (metric, "loss"))
    if results["diverged"] or value is None or not math.isfinite(value):
        return Score(None, WORST, results["steps"], stopped)
    name = metric_and_test(metric)[0]
    higher = name != "loss" and results["directions"].get(name, True)
    rank = (value if higher else -value, -loss if loss is not None and math.isfinite(loss) else -math.inf)
    return Score(value, rank, results["steps"], stopped)


@dataclass
class Tuning:
    """The trials of a recipe, and the runs that it reports with what they chose.

    Args:
        runs: the reported ones, as the recipe has them. folder: of the comparison. cell: of a run. is_sound: whether a
            trial can be trained.
    """

    recipe: Recipe
    tune: TuneSettings
    runs: list[RunSpec]
    folder: Path
    cell: Callable[[RunSpec], Cell]
    is_sound: Callable[[RunSpec], bool]
    spaces: list[list[Axis]] = field(default_factory=list, init=False)  # as they were in each round
    trials: list[Trial] = field(default_factory=list, init=False)
    cells: list[Cell] = field(default_factory=list, init=False)  # of the trials that were due so far
    scores: dict[str, dict[int, Score]] = field(default_factory=dict, init=False)  # variant → number → score

    def __post_init__(self) -> None:
        self.variants = {run.variant: run for run in self.runs}  # any of its seeds
        self.metric = str(self.recipe.data["evaluate"]["best"])

    def known(self, only: str | None) -> list[Cell]:
        """All cells that are known before anything is trained: trials that are due, and the reported runs, with the
        values that were chosen for them where they are. `only`: the one of this name.

        Raises:
            UserError: `only` is none of them, or a run is reported whose variant is not tuned yet.
        """
        is_tuned = all(cell.is_finished for stage in self.stages() for cell in stage)
        reported = self.chosen() if is_tuned else [self.cell(run) for run in self.runs]
        cells = [*self.cells, *reported, *self.untuned()]
        if only is not None:
            names = [cell.name for cell in cells]
            if only not in names:
                raise UserError(f"--cell: {unknown('run', only, names)}")
            cells = [cell for cell in cells if cell.name == only]
        if is_tuned or not (early := [cell for cell in cells if cell in reported and (only or cell.is_begun)]):
            return cells
        missing = next(cell.name for cell in self.cells if not cell.is_finished)
        if only is not None and not early[0].is_begun:
            text = _("--cell {only}: trials choose its values, and one of them is not finished: {missing}")
            raise UserError(text.format(only=only, missing=missing))
        text = _(
            "{folder} was begun, but its variant is not tuned: {missing} is not finished. Add --out DIR for "
            "another place (in Python out=DIR)"
        )
        raise UserError(text.format(folder=early[0].folder, missing=missing))

    def names(self, reported: Iterable[str]) -> list[str]:
        """Of all runs that are known: the trials, the `reported` ones, and beside these those with the recipe's own
        values."""
        wanted = list(reported)
        beside = [cell.name for cell in self.untuned() if replace(cell.spec, place="").name in wanted]
        return [*(cell.name for cell in self.cells), *wanted, *beside]

    # --------------------------------------------------------------------------------------------------------- trials

    def stages(self, report: Callable[[str], None] = lambda text: None) -> Iterator[list[Cell]]:
        """Cells of trials as they are due. When the next stage is asked for, those of the ones before must be finished.
        `report` gets a sentence where the space is widened."""
        self.spaces, self.trials, self.cells = [self.tune.axes()], [], []
        self.scores = {variant: {} for variant in self.variants}
        for number in range(self.tune.widen + 1):
            first = len(self.trials) + 1
            new = points(self.spaces[-1], self.tune.trials, beyond=self.spaces[-2] if number else ())
            trials = [Trial(first + i, number, values) for i, values in enumerate(new)]
            self.trials += trials
            yield from self._rungs(trials)
            wider = self._wider(report) if number < self.tune.widen else self.spaces[-1]
            if wider == self.spaces[-1]:
                break
            self.spaces.append(wider)

    def _rungs(self, trials: Sequence[Trial]) -> Iterator[list[Cell]]:
        """The trials of a round, with all steps; or, where they are halved, with few steps first, and then those that
        are left of each variant."""
        left = {variant: list(trials) for variant in self.variants}
        last = len(self.tune.rungs(1)) - 1
        for rung in range(last + 1):
            cells = {
                (variant, each.number): self.cell(self._spec(run, each, rung))
                for each in trials
                for variant, run in self.variants.items()
                if each in left[variant]
            }
            self.cells += cells.values()
            yield list(cells.values())
            for (variant, number), cell in cells.items():
                self.scores[variant][number] = read_score(cell.folder, self.metric, stopped=rung < last)
            for variant, some in left.items():
                some.sort(key=lambda each: self.scores[variant][each.number].rank, reverse=True)
                del some[self.tune.left(rung + 1, len(trials)) :]

    def _spec(self, run: RunSpec, each: Trial, rung: int = -1) -> RunSpec:
        return trial(run, self.tune, each.number, each.values, self.recipe.origins, rung)

    # --------------------------------------------------------------------------------------------------- what is chosen

    def chosen(self) -> list[Cell]:
        """The runs that are reported, with the values that were chosen.

        Raises:
            UserError: every trial of a variant diverged.
        """
        return [self.cell(tuned(run, self.best(run.variant).values, self.recipe.origins)) for run in self.runs]

    def untuned(self) -> list[Cell]:
        """Those with the recipe's own values, where they are reported too."""
        return [self.cell(run) for run in own(self.tune, self.runs)]

    def best(self, variant: str) -> Trial:
        """The best trial of a variant: by the deciding metric on the validation split, then by the loss.

        Raises:
            UserError: all of them diverged.
        """
        scores = self.scores[variant]
        number = max((each for each in scores if not scores[each].stopped), key=lambda each: scores[each].rank)
        if scores[number].rank == WORST:
            text = _(
                "every trial of variant '{variant}' diverged, so that nothing can be chosen for it; give "
                "`tune.space` other values (smaller rates), and --out DIR for another place"
            )
            raise UserError(text.format(variant=variant))
        return self.trials[number - 1]

    def edges(self, variant: str) -> dict[str, int]:
        """The axes on which a variant's best trial lies at the edge of what was tried: path → −1 below, 1 above."""
        best = self.best(variant)
        sides = {
            axis.path: axis.edge(best.values[axis.path], [each.values[axis.path] for each in self.trials])
            for axis in self.spaces[-1]
        }
        return {path: side for path, side in sides.items() if side}

    def _wider(self, report: Callable[[str], None]) -> list[Axis]:
        """The space, wider wherever the best trial of any variant lies at its edge; as it is where nothing wider is a
        setting of every variant."""
        wanted: dict[tuple[str, int], list[str]] = {}
        for variant in self.variants:
            for edge in self.edges(variant).items():
                wanted.setdefault(edge, []).append(variant)
        space = list(self.spaces[-1])
        for (path, side), variants in wanted.items():
            place = next(i for i, axis in enumerate(space) if axis.path == path)
            axis = space[place].widened(side)
            if axis != space[place] and self._is_sound(axis, side):
                names = ", ".join(f"“{variant}”" for variant in variants)
                report(f"The best trial of {names} is at the edge of the space: {path} is now {axis} for all variants")
                space[place] = axis
        return space

    def _is_sound(self, axis: Axis, side: int) -> bool:
        values = {**self.trials[0].values, axis.path: axis.values[0 if side < 0 else -1]}
        return all(self.is_sound(self._spec(run, Trial(1, 0, values))) for run in self.variants.values())

    # ------------------------------------------------------------------------------------------------------- the record

    def write(self) -> None:
        """Write down all trials, what was chosen, and the space as it became. Raises: as `best`."""
        record = {
            "metric": self.metric,
            "higher_is_better": self.higher_is_better(),
            "seed": self.tune.seed,
            "trials": self.tune.trials,
            "halving": self.tune.halving,
            "spaces": [{axis.path: axis.written() for axis in space} for space in self.spaces],
            "variants": {variant: self._record_of(variant) for variant in self.variants},
        }
        write_whole(self.folder / RECORD, json_text(record), shared=True)

    def higher_is_better(self) -> bool:
        """Whether it is for the deciding metric, as any trial says."""
        results = read_results(self.cells[0].folder, ("directions",))
        name = metric_and_test(self.metric)[0]
        return name != "loss" and bool(results["directions"].get(name, True))

    def _record_of(self, variant: str) -> dict[str, Any]:
        best, scores = self.best(variant), self.scores[variant]
        edges = {path: "below" if side < 0 else "above" for path, side in self.edges(variant).items()}
        trials = []
        for each in self.trials:
            score = scores[each.number]
            values = {"number": each.number, "round": each.round, "values": each.values}
            trials.append({**values, "score": score.value, "steps": score.steps, "stopped": score.stopped})
        return {"chosen": best.number, "values": best.values, "at_edge": edges, "trials": trials}
