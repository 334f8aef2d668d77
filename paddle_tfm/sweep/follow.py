"""A run that another process trains, followed by what that process writes into its folder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from paddle_tfm.errors import UserError
from paddle_tfm.files import read_json
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.registry import Registry
from paddle_tfm.sweep.cells import Cell
from paddle_tfm.sweep.events import Card, Event
from paddle_tfm.train import about, checkpoint
from paddle_tfm.train.logs import is_before


class Follower:
    """Turns a run's folder into the events of its training: at each look those that came since the last one. It must be
    created before the training starts: what is there then is of an earlier one."""

    def __init__(self, cell: Cell, registry: Registry, on_event: Callable[[Event], None]):
        self.cell, self.registry, self.on_event = cell, registry, on_event
        self.trainings = self._trainings()
        self.resumed: dict[str, Any] | None = None  # the state in which the training starts, if it resumes
        with suppress(UserError):  # a damaged one: the process that resumes says so
            self.resumed = checkpoint.load_state(cell.folder / "checkpoints" / "last", ("step", "evaluated"))
        self.card: Card | None = None
        self.offset, self.tokens, self.start_time, self.has_ended = 0, 0, 0.0, False

    def look(self) -> None:
        """Pass on what happened since the last look."""
        if self.has_ended or (self.card is None and self._trainings() == self.trainings):
            return
        is_finished = self.cell.is_finished  # before the log is read, whose last rows precede the results
        if self.card is None:
            step = self.resumed["step"] if self.resumed else 0
            self.card = Card.of_folder(self.cell.folder, plan_run(self.cell.spec, self.registry), step)
            self.start_time = (self.cell.folder / about.FILE).stat().st_mtime
            self.on_event(Event("start", self.card))
        last = None
        for row in self._new_rows():
            self.card = replace(self.card, step=row["step"])
            if "evaluation" in row:
                self.on_event(Event("evaluation", self.card, row["evaluation"]))
            else:
                last, self.tokens = row, self.tokens + int(row["tokens"])
        if is_finished:
            self.has_ended = True
            self.on_event(Event("end", self.card, read_json(self.cell.folder / "results.json")))
        elif last is not None:
            self.on_event(Event("step", self.card, {**last, **self._speed(self.card)}))

    def _speed(self, card: Card) -> dict[str, float]:
        """By the clock, evaluations included."""
        seconds = max(time.time() - self.start_time, 1e-3)
        steps = max(card.step - (self.resumed["step"] if self.resumed else 0), 1)
        return {"tokens_per_second": self.tokens / seconds, "seconds_left": (card.steps - card.step) * seconds / steps}

    def _trainings(self) -> int:
        return len(about.read_about(self.cell.folder).get("trainings", []))

    def _new_rows(self) -> Iterator[dict[str, Any]]:
        """The rows that were added to the log; of a resumed training only its own."""
        try:
            with (self.cell.folder / "metrics.jsonl").open("rb") as file:
                file.seek(self.offset)
                whole_lines = file.read().rpartition(b"\n")[:2]
        except FileNotFoundError:
            return
        self.offset += sum(map(len, whole_lines))
        for row in map(json.loads, whole_lines[0].splitlines()):
            if self.resumed is None or not is_before(row, self.resumed["step"], self.resumed["evaluated"]):
                yield row
