"""A run that another process trains, followed by what that one writes into the run's folder."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from paddle_tfm.errors import UserError
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.registry import Registry
from paddle_tfm.runs import manifest
from paddle_tfm.runs.forms import Progress, read_about, read_results
from paddle_tfm.runs.logs import NewRows, is_before
from paddle_tfm.sweep.cells import Cell
from paddle_tfm.sweep.events import Card, Event


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
