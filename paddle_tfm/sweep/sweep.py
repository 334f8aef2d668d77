"""All runs of a recipe, one after another: the same data, the same order, the same budget for every variant."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from paddle_tfm.data import cache
from paddle_tfm.data.corpus import Corpus, load_corpus
from paddle_tfm.errors import Problem, RecipeError, UserError
from paddle_tfm.files import read_json
from paddle_tfm.hookspecs import hookimpl
from paddle_tfm.model.build import build
from paddle_tfm.recipe.loading import Recipe, RunSpec, check_components
from paddle_tfm.recipe.settings import PER_SITE, at_site, components, locate, sites
from paddle_tfm.registry import Registry, Spec
from paddle_tfm.train.identity import changes, identity, read_identity
from paddle_tfm.train.run import Run, build_metrics, create
from paddle_tfm.train.trainer import Trainer

CHECK_VOCABULARY = 32
STEP_SECONDS = 0.1  # a step event at most so often


def check(recipe: Recipe, registry: Registry) -> list[RunSpec]:
    """The runs of a recipe whose every component exists, takes its options, and fits its site and neighbours: each
    variant's model is built once with a small vocabulary. Nothing is read or trained.

    Raises:
        RecipeError: everything that is wrong, in all variants, at once.
    """
    runs, problems = recipe.expand()
    for variant in {run.variant: run for run in runs}.values():
        found = check_components(variant, registry)
        if not found and variant.settings is not None:
            found = [locate(problem, variant.origins) for problem in _refusals(variant, registry)]
        problems += [problem for problem in found if problem not in problems]
    if problems:
        raise RecipeError(recipe.source, problems)
    return runs


def _refusals(run: RunSpec, registry: Registry) -> list[Problem]:
    """What the constructors of a run's components refuse."""
    problems = []
    try:
        build(run.settings.model, registry, CHECK_VOCABULARY, CHECK_VOCABULARY)
    except RecipeError as error:
        problems += error.problems
    try:
        build_metrics(run.settings, registry)
    except RecipeError as error:
        problems += error.problems
    given = {"d_model": run.settings.model.d_model, "steps": run.settings.train.steps}
    for kind, path, spec in components(run.data):
        if not path.startswith(("model.", "evaluate.metrics")):
            try:
                registry.build(kind, spec, path, **given)
            except RecipeError as error:
                problems += error.problems
    return problems


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

    def prepare(self) -> list[RunSpec]:
        """What must be so before anything is trained: a sound recipe, a folder that is free, data that are here (they are
        fetched once, and not by every worker). Returns the runs.

        Raises:
            RecipeError, UserError: something is wrong with the recipe, its data or the folder.
        """
        runs = check(self.recipe, self.registry)
        present = [spec for spec in runs if (self.folder / spec.name / "identity.json").exists()]
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
        for sentence in declared_limits(runs, self.registry):
            self.report(sentence)
        for spec in runs:
            self._same(spec)
        for data in {str(spec.data["task"]): spec.data for spec in runs}.values():
            cache.prepare(data, self.registry)
        return runs

    def run(self, runs: Sequence[RunSpec] | None = None) -> list[Path]:
        """Train everything that is not trained yet; returns the runs' folders. `runs` are what `prepare` returned, where
        it was called before.

        Raises:
            RecipeError, UserError: as `prepare`, and where data cannot be read.
            Interrupted: `stop` said so; `resume` goes on.
        """
        runs = self.prepare() if runs is None else runs
        workers = min(self.workers, len(runs))
        if workers > 1:
            from paddle_tfm.sweep.workers import train_side_by_side

            train_side_by_side(self, runs, workers)
        else:
            self.train_here(runs)
        return [self.folder / spec.name for spec in runs]

    def train_here(self, runs: Iterable[RunSpec]) -> None:
        """Train these runs in this process, one after another."""
        manager, watcher = self.registry.plugins.manager, Watcher(self.tell)
        manager.register(watcher)
        try:
            corpora: dict[str, Corpus] = {}
            for spec in runs:
                self._one(spec, corpora)
        finally:
            manager.unregister(watcher)

    def _one(self, spec: RunSpec, corpora: dict[str, Corpus]) -> None:
        key = str(spec.data["task"])
        if key not in corpora:
            corpora[key] = load_corpus(spec.settings, self.registry)
        folder = self.folder / spec.name
        run = create(spec, self.registry, folder, corpora[key], self.resume)
        for bound, count in run.dropped.items():
            self.report(f"{spec.name}: {count:,} training examples are beyond {bound} and were dropped")
        self._same(spec, run.fingerprint)
        if _finished(folder):
            self.tell(Event("finished", card(run)))
        else:
            Trainer(run, self.registry.plugins, self.stop, self.report, self.strict).train(resume=self.resume)

    def _same(self, spec: RunSpec, data: dict[str, str] | None = None) -> None:
        """Refuse to go on with a run that was begun otherwise; `data` are hashes of the texts, where they are read."""
        folder = self.folder / spec.name
        if not (folder / "identity.json").exists():
            return
        then = read_identity(folder)
        if different := changes(then, identity(spec.data, self.registry, then["data"] if data is None else data)):
            raise UserError(
                f"{folder} cannot be resumed: {'; '.join(different)}. Use --out DIR for another place, or remove it"
            )


def _finished(folder: Path) -> bool:
    """Whether a run's results are there, whole."""
    try:
        return "variant" in read_json(folder / "results.json")
    except UserError:
        return False


def declared_limits(runs: Sequence[RunSpec], registry: Registry) -> list[str]:
    """Sentences about what the recipe's components say of themselves (`expected_failures`) at the sites where they are used."""
    said: dict[str, None] = {}
    for run in {run.variant: run for run in runs}.values():
        model = run.settings.model.model_dump()
        for kind in PER_SITE:
            for sublayer in ("self", "cross", "feed_forward"):
                if ("decoder", sublayer) not in sites(kind, run.settings.model.shape):
                    continue
                _, spec = at_site(kind, model[kind], "decoder", sublayer)
                if spec is None:
                    continue
                name = Spec.parse(spec).name
                limits = getattr(registry.entry(kind, name).load(), "expected_failures", {})
                if "causal_in_training" in limits:
                    said[f"{run.variant}: {kind} '{name}' in the decoder: {limits['causal_in_training']}"] = None
    return list(said)
