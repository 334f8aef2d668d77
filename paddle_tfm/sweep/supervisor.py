"""A sweep as its executor sees it: what trains cells on this machine, and follows those that other processes train, by
what these write into the runs' folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

from paddle_tfm import protocols
from paddle_tfm.errors import UserError
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.registry import Registry
from paddle_tfm.runs import manifest
from paddle_tfm.runs.forms import Progress, read_about, read_results
from paddle_tfm.runs.logs import NewRows, is_before
from paddle_tfm.sweep.cells import Cell
from paddle_tfm.sweep.events import Card, Event
from paddle_tfm.sweep.serial import Serial
from paddle_tfm.sweep.workers import Workers
from paddle_tfm.train.ranks.rank_zero import Ranks


class Supervisor(protocols.Supervisor):
    """What a sweep is to its executor: it has cells trained, here or elsewhere. Its attributes are those of `Sweep`."""

    registry: Registry
    resume: bool
    strict: bool
    on_event: Callable[[Event], None]
    plugin_files: Sequence[Path]
    device: str
    executor: protocols.Executor | None
    others: Ranks | None
    followers: dict[str, Follower]  # of the cells that the executor was given, by their names

    def outcomes(self, cells: Sequence[Cell]) -> Iterator[protocols.Outcome]:
        """How each cell ended, as the executor says it, after all that its run has to show; without one, by `train`."""
        self.followers = {}
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


class Follower:
    """Turns a run's folder into the events of its training: at each look those that came since the last one. It must be
    created before the training starts: what is there then is of an earlier one."""

    def __init__(self, cell: Cell, registry: Registry, on_event: Callable[[Event], None]):
        self.cell, self.registry, self.on_event = cell, registry, on_event
        self.trainings = self._trainings()
        self.resumed: Progress | None = None  # the state in which the training starts, if it resumes
        with suppress(UserError):  # none is whole: the process that resumes says so
            if point := manifest.resume_point(cell.folder / "checkpoints"):
                self.resumed = manifest.read_state(point)
        self.card: Card | None = None
        self.new_rows = NewRows(cell.folder / "metrics.jsonl")
        self.evaluated, self.has_ended = -1, False  # the step of the evaluation that was passed on last

    def look(self) -> None:
        """Pass on what happened since the last look."""
        if self.has_ended or (self.card is None and self._trainings() == self.trainings):
            return
        is_finished = self.cell.is_finished  # before the log is read, whose last rows precede the results
        if self.card is None:
            step = self.resumed.step if self.resumed else 0
            self.card = Card.of(self.cell.folder, plan_run(self.cell.spec, self.registry), step)
            self.on_event(Event("start", self.card))
        for row in self.new_rows():
            if self.resumed is not None and is_before(row, self.resumed.step, self.resumed.evaluated):
                continue
            self.card = replace(self.card, step=row["step"])
            if "evaluation" in row and row["step"] > self.evaluated:  # a run that is tried again repeats some
                self.evaluated = row["step"]
                self.on_event(Event("evaluation", self.card, row["evaluation"]))
        if is_finished:
            self.has_ended = True
            self.on_event(Event("end", self.card, read_results(self.cell.folder)))

    def _trainings(self) -> int:
        return len(read_about(self.cell.folder).get("trainings", []))
