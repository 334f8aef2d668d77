"""All runs of a recipe: the same data, the same order, the same budget for every variant."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from paddle_tfm import protocols, runtime
from paddle_tfm.data import datasets
from paddle_tfm.data.corpus import load_corpus
from paddle_tfm.errors import Problem, RecipeError, UserError, unknown
from paddle_tfm.language import _
from paddle_tfm.recipe.expansion import Recipe, RunSpec
from paddle_tfm.recipe.plan import Plan, plan_run
from paddle_tfm.recipe.sections.equal import of
from paddle_tfm.recipe.sections.tuning import is_beside
from paddle_tfm.registry import Registry
from paddle_tfm.runs.sweep_files import COMMAND_FILE, Command, write_command
from paddle_tfm.sweep.added_seeds import Undecided, require_same_looks, stages
from paddle_tfm.sweep.cells import Cell, OncePerTexts
from paddle_tfm.sweep.check import check, remarks, trial_problems
from paddle_tfm.sweep.equal import equalized
from paddle_tfm.sweep.events import Card, Event
from paddle_tfm.sweep.follow import Follower
from paddle_tfm.sweep.serial import Serial
from paddle_tfm.sweep.tuning import Tuning
from paddle_tfm.sweep.workers import Workers
from paddle_tfm.train import start
from paddle_tfm.train.ranks.rank_zero import Ranks
from paddle_tfm.train.trainer import Interrupted


class RunsFailed(UserError):
    """Some runs of a sweep failed; the others are finished."""


@dataclass
class Sweep(protocols.Supervisor):
    """The trainings of a recipe below one folder.

    Args:
        resume: skip finished runs and continue the others; without it the folder must hold none.
        stop, report, strict: as for `Trainer`.
        on_event: gets an `Event` whenever something happens.
        workers: how many runs this machine trains side by side; 1: in this process.
        plugin_files, device: what `--plugin` and `--device` named, for the workers.
        executor: who trains the runs; None: this machine.
        only: the name of one run, where the others are somebody else's.
        cell_options: more options of `paddle-tfm run` for runs trained by a command of their own.
        others: the other ranks, where several processes train each run.
        undecided: which variants need more seeds, by what is finished; for recipes that add seeds (`stages`).
    """

    recipe: Recipe
    registry: Registry
    folder: Path
    resume: bool = False
    stop: Callable[[], bool] = lambda: False
    report: Callable[[str], None] = lambda text: None
    on_event: Callable[[Event], None] = lambda event: None
    strict: bool = False
    workers: int = 1
    plugin_files: Sequence[Path] = ()
    device: str = "cpu"
    executor: protocols.Executor | None = None
    only: str | None = None
    cell_options: Sequence[str] = ()
    others: Ranks | None = None
    undecided: Undecided = lambda cells: {cell.spec.variant for cell in cells}
    tuning: Tuning | None = field(default=None, init=False, repr=False)
    followers: dict[str, Follower] = field(default_factory=dict, init=False, repr=False)  # of what the executor has

    # -------------------------------------------------------------------------------------------- what is to be trained

    def prepare(self) -> list[Cell]:
        """What must hold before anything is trained: a sound recipe, a free folder, data on this machine (they are
        fetched once, and not by every worker). Returns the cells; of a recipe that tunes, the
        trials that are due, and the reported runs, with what was chosen for them if it was.

        Raises:
            RecipeError, UserError: something is wrong with the recipe, its data or the folder.
        """
        equal, only = bool(of(self.recipe.data).setting), self._only()
        plans = check(self.recipe, self.registry, only=None if equal else only)
        cells = self._cells(plans, only)
        if not self.resume and any(cell.is_begun for cell in cells):
            raise UserError(
                _(
                    "{folder} holds runs of this recipe already; add --resume to continue them, or --out DIR for "
                    "another place (in Python resume=True, or out=DIR)"
                ).format(folder=self.folder)
            )
        self._make_folder()
        for sentence in remarks(plans):
            self.report(sentence)
        if equal:
            plans = self._equalized(plans)
            cells = self._cells(plans, only)
        begin: dict[str, list[Problem]] = {}
        for cell in cells:
            plan = plan_run(cell.spec, self.registry)
            if cell.is_begun:
                if sentence := cell.continued(plan):
                    self.report(sentence)
                cell.require_unchanged(plan)
            elif cell.spec.variant not in begin:
                begin[cell.spec.variant] = plan.located(start.problems(plan))
        if problems := [problem for of_variant in begin.values() for problem in of_variant]:
            raise RecipeError(self.recipe.source, dict.fromkeys(problems))
        require_same_looks(self.recipe, self.folder, cells)
        _fetch(plans)
        return cells

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                _("{folder} cannot be written: {why}").format(folder=self.folder, why=error.strerror)
            ) from error
        if not os.access(self.folder, os.W_OK):
            raise UserError(
                _("{folder} cannot be written; choose another place with --out DIR (from Python: out=DIR)").format(
                    folder=self.folder
                )
            )

    def _cells(self, plans: Sequence[Plan], only: Sequence[str] | None) -> list[Cell]:
        """Those of the runs that are planned, `only` some of them or all; of a recipe that tunes what is known of its
        cells."""
        if tune := self.recipe.tune():
            runs = [plan.run for plan in plans]
            self.tuning = Tuning(self.recipe, tune, runs, self.folder, self._cell, self._is_sound)
            return self.tuning.known(self.only)
        return [self._cell(plan.run) for plan in plans if only is None or plan.run.name in only]

    def _equalized(self, plans: Sequence[Plan]) -> list[Plan]:
        """The plans of the runs that are wanted, once every variant gets as much as the baseline."""
        _fetch(plans)
        by_name = {plan.run.variant: plan for plan in reversed(plans)}
        self.recipe, sentences = equalized(self.recipe, by_name, self.registry, self.folder, self.workers)
        for sentence in sentences:
            self.report(sentence)
        return check(self.recipe, self.registry, only=self._only())

    def _only(self) -> list[str] | None:
        """The names of the runs that are wanted; None: all, among which tuning finds its cells itself.

        Raises:
            UserError: `only` names no run.
        """
        if self.only is None or self.recipe.data.get("tune"):
            return None
        names = [run.name for run in self.recipe.expand()[0]]
        if self.only not in names:
            raise UserError(f"--cell: {unknown('run', self.only, names)}")
        return [self.only]

    def _words(self) -> list[str]:
        """What is asked for, without a place."""
        return ["run", *self.recipe.arguments, *(f"--plugin={file}" for file in self.plugin_files)]

    def _is_sound(self, run: RunSpec) -> bool:
        return not trial_problems(run, self.registry)

    def _cell(self, run: RunSpec) -> Cell:
        name = run.name
        options = [*self.cell_options, *(["--strict"] if self.strict else [])]
        command = [*runtime.python(), "-m", "paddle_tfm", *self._words(), *options]
        command += [f"--out={self.folder}", "--resume", "--of-sweep", f"--cell={name}"]
        return Cell(run, self.folder / name, command, runtime.users_environment())

    # --------------------------------------------------------------------------------------------------- in which order

    def run(self, cells: Sequence[Cell] | None = None) -> list[Path]:
        """Train everything that is not trained yet; returns the runs' folders. `cells` are what `prepare` returned,
        where it was called before.

        Raises:
            RecipeError, UserError: as `prepare`, and where data cannot be read.
            RunsFailed: some runs failed, as `report` was told; `resume` trains them again.
            Interrupted: `stop` said so; `resume` continues.
        """
        cells = self.prepare() if cells is None else cells
        trained: list[Cell] = []
        for stage in self._stages(cells):
            self._train_all(stage)
            trained += stage
        return [cell.folder for cell in trained if self.only or not is_beside(cell.folder)]

    def _stages(self, cells: Sequence[Cell]) -> Iterator[Sequence[Cell]]:
        """Cells as they are due: trials, then the reported runs, seeds of which may be added."""
        names = [run.name for run in self.recipe.expand()[0]]
        beside: list[Cell] = []
        if self.tuning is not None and self.only is None:
            for stage in self.tuning.stages(self.report):
                self._write_command(names)
                yield stage
            self.tuning.write()
            cells, beside = self.tuning.chosen(), self.tuning.untuned()
        self._write_command(names)

        def undecided(done: Sequence[Cell]) -> set[str]:
            """As `self.undecided`; runs that are not to be are taken off the list of those that are waited for."""
            variants, due = self.undecided(done), {cell.name for cell in done}
            names[:] = [name for name in names if name in due or name.rpartition("/")[0] in variants]
            self._write_command(names)
            return variants

        yield from stages(cells, None if self.only else self.recipe.seed_plan(), undecided, beside)

    def _write_command(self, names: Sequence[str]) -> None:
        """Write `command.json`; whoever trains one run of a sweep that is distributed leaves it as it is."""
        if self.only is not None and (self.folder / COMMAND_FILE).exists():
            return
        names = self.tuning.names(names) if self.tuning else names
        plan, smallest = self.recipe.seed_plan(), self.recipe.data.get("smallest_effect")
        question = {"seeds": plan and plan.model_dump(exclude_defaults=True), "smallest_effect": smallest}
        command = Command(
            command=["paddle-tfm", *self._words()],
            runs=list(names),
            baseline=self.recipe.data.get("baseline"),
            question=question,
            variants=self.recipe.varied(),
            factors=self.recipe.factors(),
            taken_away=self.recipe.taken_away(),
        )
        write_command(self.folder, command)

    # ---------------------------------------------------------------------------------------------------- who trains it

    def _train_all(self, cells: Sequence[Cell]) -> None:
        """Train those that are not trained yet. Raises: as `run`."""
        waiting = self.unfinished(cells)
        failed, otherwise = set(), set()
        known = {cell.name: cell for cell in waiting}
        for cell, failure in self.outcomes(waiting):
            if not failure and (failure := self._trained_otherwise(known[cell.name])):
                otherwise.add(cell.name)
            if failure or not cell.is_finished:
                failed.add(cell.name)
                self.report(f"{cell.name} failed: {failure or 'it is said to be finished, but has no results'}")
        missing = [cell for cell in waiting if cell.name in otherwise or not cell.is_finished]
        if missing and self.stop():
            raise Interrupted(", ".join(sorted(cell.name for cell in missing if cell.is_begun)))
        if missing:
            names = [cell.name + ("" if cell.name in failed else " (never trained)") for cell in missing]
            raise RunsFailed(
                _("{number} of {runs} runs failed: {names}").format(
                    number=len(missing), runs=len(cells), names=", ".join(names)
                )
            )

    def outcomes(self, cells: Sequence[Cell]) -> Iterator[protocols.Outcome]:
        """How each cell ended, as the executor says it, after all that its run has to show; without one, by `train`."""
        if self.executor is None:
            yield from self.train(cells)
            return
        self.followers = {cell.name: Follower(cell, self.registry, self.on_event) for cell in cells}
        for outcome in self.executor.run(cells, self):
            self.follow(outcome.cell)
            yield outcome

    def follow(self, cell: protocols.Cell) -> None:
        """Show how far a run is that another process trains."""
        if cell.name in self.followers:
            self.followers[cell.name].look()

    def train(self, cells: Iterable[protocols.Cell]) -> Iterator[protocols.Outcome]:
        """Train cells on this machine: in this process, or `workers` side by side in processes of their own.

        Raises:
            UserError: what is wrong with a run. The others have stopped, and `resume` continues.
            Interrupted: `stop` said so, and a checkpoint of every run is saved.
        """
        ours = cast("list[Cell]", list(cells))
        for cell in ours:
            self.followers.pop(cell.name, None)  # its events come without
        options = self.resume, self.strict, self.stop, self.report, self.on_event
        workers = min(self.workers, len(ours))
        if workers > 1:
            return Workers(workers, self.plugin_files, self.device, *options).run(ours)
        return Serial(self.registry, *options, self.others).run(ours)

    def _trained_otherwise(self, cell: Cell) -> str:
        """How a run that was finished elsewhere differs from what was asked for, as where that machine has another
        recipe; "" if it does not."""
        is_ours = self.executor is None or self.executor.at_once is None  # trained by this process and its workers
        if is_ours or not (cell.is_begun and cell.is_finished):
            return ""
        differing = cell.differences(plan_run(cell.spec, self.registry))
        return f"it was trained otherwise than asked for: {differing}" if differing else ""

    def unfinished(self, cells: Iterable[Cell]) -> list[Cell]:
        """The cells that are to be trained. Of the others it is made sure that their texts are still the same, and that
        nothing is left beside them of processes that were killed.

        Raises:
            UserError: they are not, or cannot be read.
        """
        fingerprint_of = OncePerTexts(lambda plan: load_corpus(plan).fingerprint)
        waiting = []
        for cell in cells:
            if not cell.is_finished:
                waiting.append(cell)
                continue
            plan = plan_run(cell.spec, self.registry)
            cell.require_unchanged(plan, fingerprint_of(plan))
            cell.require_whole()
            cell.tidy()
            self.on_event(Event("finished", Card.of(cell.folder, plan, plan.settings.train.steps)))
        return waiting


def _fetch(plans: Sequence[Plan]) -> None:
    """Fetch the data of all runs, once for runs that share them."""
    fetched = OncePerTexts(datasets.fetch_all)
    for plan in plans:
        fetched(plan)
