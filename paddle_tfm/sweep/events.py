"""What a sweep reports while it trains: plain values, so that they can come from another process. How far a run is
between two evaluations stands in its log (`standing.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from paddle_tfm.hookspecs import hookimpl
from paddle_tfm.runs.forms import read_about

if TYPE_CHECKING:
    from paddle_tfm.recipe.plan import Plan


@dataclass(frozen=True)
class Card:
    """The facts about a run that whoever watches it may show."""

    name: str
    step: int
    steps: int
    parameters: int
    examples: int
    best: str
    units: Mapping[str, str]  # of metrics
    padding: float  # the share of it in training batches

    @classmethod
    def of(cls, folder: Path, plan: Plan, step: int) -> Card:
        """The facts about the run of a plan, whoever trains it, or trained it, as its folder says."""
        about, settings = read_about(folder), plan.settings
        units = {name: metric.build().unit for name, metric in plan.metrics().items()}
        examples = about.get("examples", {}).get("train", 0)
        parameters = about.get("parameters", 0)
        steps, best, padding = settings.train.steps, settings.evaluate.best, about.get("padding", 0.0)
        return cls(plan.run.name, step, steps, parameters, examples, best, units, padding)


@dataclass(frozen=True)
class Event:
    """Something that happened to a run: kind is `finished` (in an earlier session), `start`, `evaluation` or `end`;
    `data` holds its metrics or results."""

    kind: str
    card: Card
    data: dict = field(default_factory=dict)


class Watcher:
    """The listener that turns a training into events, each of which `on_event` gets."""

    def __init__(self, on_event: Callable[[Event], None]):
        self.on_event = on_event

    @hookimpl
    def on_run_start(self, run) -> None:
        self.card = Card.of(run.folder, run.plan, run.step)
        self.on_event(Event("start", self.card))

    @hookimpl
    def on_evaluation_end(self, run, step, metrics) -> None:
        self.on_event(Event("evaluation", replace(self.card, step=run.step), metrics))

    @hookimpl
    def on_run_end(self, run, results) -> None:
        self.on_event(Event("end", replace(self.card, step=run.step), results))
