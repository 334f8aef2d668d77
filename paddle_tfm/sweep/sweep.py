"""All runs of a recipe, one after another: the same data, the same order, the same budget for every variant."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from paddle_tfm.data import cache
from paddle_tfm.data.corpus import Corpus, load_corpus
from paddle_tfm.errors import UserError
from paddle_tfm.files import read_json
from paddle_tfm.hookspecs import hookimpl
from paddle_tfm.recipe.expansion import Recipe
from paddle_tfm.recipe.plan import Plan
from paddle_tfm.registry import Registry
from paddle_tfm.sweep.check import check, expected_failures
from paddle_tfm.train.run import Run, changes, create, identity, read_identity
from paddle_tfm.train.trainer import Trainer

STEP_SECONDS = 0.1  # a step event at most so often


@dataclass(frozen=True)
class Card:
    """What is told of a run to whoever watches it: plain values, so that it can come from another process."""

    name: str
    step: int
    steps: int
    parameters: int
    examples: int
    best: str
    units: dict[str, str]  # of metrics


@dataclass(frozen=True)
class Event:
    """Something that a sweep did: kind is `finished` (before we came), `start`, `step`, `evaluation`, `end` or `note`;
    `data` holds metrics, results, or under "text" a sentence."""

    kind: str
    card: Card
    data: dict = field(default_factory=dict)


class Watcher:
    """The listener that turns a training into events."""

    def __init__(self, tell: Callable[[Event], None], every: float = STEP_SECONDS):
        self.tell, self.every, self.told = tell, every, 0.0
        self.card: Card | None = None  # of the run under way; all but its step stays as it began

    @hookimpl
    def on_run_start(self, run) -> None:
        self.card = card(run)
        self._say("start", run, {})

    @hookimpl
    def on_step_end(self, run, step, metrics) -> None:
        if time.monotonic() - self.told >= self.every:
            self.told = time.monotonic()
            self._say("step", run, metrics)

    @hookimpl
    def on_evaluation_end(self, run, step, metrics) -> None:
        self._say("evaluation", run, metrics)

    @hookimpl
    def on_run_end(self, run, results) -> None:
        self._say("end", run, results)

    def _say(self, kind: str, run: Run, data: dict) -> None:
        self.tell(Event(kind, replace(self.card, step=run.step), data))


def card(run: Run) -> Card:
    """What is told of a run."""
    units = {name: metric.unit for name, metric in run.metrics().items()}
    steps, best = run.settings.train.steps, run.settings.evaluate.best
    return Card(run.name, run.step, steps, run.parameters(), len(run.encoded["train"]), best, units)


@dataclass
class Sweep:
    """The trainings of a recipe below one folder.

    Args:
        resume: skip finished runs and go on with the others; without it the folder must hold none.
        stop, report, strict: as for `Trainer`.
        tell: hears an `Event` whenever something happens.
        workers: how many processes train runs side by side; 1: this one.
        plugin_files, device: what `--plugin` and `--device` named, for the workers.
    """

    recipe: Recipe
    registry: Registry
    folder: Path
    resume: bool = False
    stop: Callable[[], bool] = lambda: False
    report: Callable[[str], None] = lambda text: None
    tell: Callable[[Event], None] = lambda event: None
    strict: bool = False
    workers: int = 1
    plugin_files: Sequence[Path] = ()
    device: str = "cpu"

    def prepare(self) -> list[Plan]:
        """What must be so before anything is trained: a sound recipe, a folder that is free, data that are here (they are
        fetched once, and not by every worker). Returns the plans of the runs.

        Raises:
            RecipeError, UserError: something is wrong with the recipe, its data or the folder.
        """
        plans = check(self.recipe, self.registry)
        present = [plan for plan in plans if (self.folder / plan.run.name / "identity.json").exists()]
        if present and not self.resume:
            raise UserError(
                f"{self.folder} holds runs of this recipe already; add --resume to go on with them, or --out DIR for "
                "another place"
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{self.folder} cannot be written: {error.strerror}") from error
        if not os.access(self.folder, os.W_OK):
            raise UserError(f"{self.folder} cannot be written; choose another place with --out DIR")
        for sentence in expected_failures(plans):
            self.report(sentence)
        for plan in plans:
            self._same(plan)
        for plan in {str(plan.run.data["task"]): plan for plan in plans}.values():
            cache.prepare(plan)
        return plans

    def run(self, plans: Sequence[Plan] | None = None) -> list[Path]:
        """Train everything that is not trained yet; returns the runs' folders. `plans` are what `prepare` returned, where
        it was called before.

        Raises:
            RecipeError, UserError: as `prepare`, and where data cannot be read.
            Interrupted: `stop` said so; `resume` goes on.
        """
        plans = self.prepare() if plans is None else plans
        workers = min(self.workers, len(plans))
        if workers > 1:
            from paddle_tfm.sweep.workers import train_side_by_side

            train_side_by_side(self, [plan.run for plan in plans], workers)
        else:
            self.train_here(plans)
        return [self.folder / plan.run.name for plan in plans]

    def train_here(self, plans: Iterable[Plan]) -> None:
        """Train these runs in this process, one after another."""
        manager, watcher = self.registry.plugins.manager, Watcher(self.tell)
        manager.register(watcher)
        try:
            corpora: dict[str, Corpus] = {}
            for plan in plans:
                self._one(plan, corpora)
        finally:
            manager.unregister(watcher)

    def _one(self, plan: Plan, corpora: dict[str, Corpus]) -> None:
        key = str(plan.run.data["task"])
        if key not in corpora:
            corpora[key] = load_corpus(plan)
        folder = self.folder / plan.run.name
        run = create(plan, folder, corpora[key], self.resume)
        for bound, count in run.dropped.items():
            self.report(f"{run.name}: {count:,} training examples are beyond {bound} and were dropped")
        self._same(plan, run.fingerprint)
        if _finished(folder):
            self.tell(Event("finished", card(run)))
        else:
            Trainer(run, self.registry.plugins, self.stop, self.report, self.strict).train(resume=self.resume)

    def _same(self, plan: Plan, data: dict[str, str] | None = None) -> None:
        """Refuse to go on with a run that was begun otherwise; `data` are hashes of the texts, where they are read."""
        folder = self.folder / plan.run.name
        if not (folder / "identity.json").exists():
            return
        then = read_identity(folder)
        if different := changes(then, identity(plan, then["data"] if data is None else data)):
            raise UserError(
                f"{folder} cannot be resumed: {'; '.join(different)}. Use --out DIR for another place, or remove it"
            )


def _finished(folder: Path) -> bool:
    """Whether a run's results are there, whole."""
    try:
        return "variant" in read_json(folder / "results.json")
    except UserError:
        return False
