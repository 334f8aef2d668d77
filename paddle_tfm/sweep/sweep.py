"""All runs of a recipe: the same data, the same order, the same budget for every variant."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from paddle_tfm.data import cache
from paddle_tfm.errors import Problem, RecipeError, UserError
from paddle_tfm.model.build import build
from paddle_tfm.recipe.loading import Recipe, RunSpec, check_components
from paddle_tfm.recipe.settings import PER_SITE, at_site, components, locate, sites
from paddle_tfm.registry import Registry, Spec
from paddle_tfm.sweep.cells import Cell
from paddle_tfm.sweep.events import Event
from paddle_tfm.sweep.local import LocalExecutor
from paddle_tfm.sweep.serial import SerialExecutor
from paddle_tfm.train.run import build_metrics

CHECK_VOCABULARY = 32


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


@dataclass
class Sweep:
    """The trainings of a recipe below one folder.

    Args:
        resume: skip finished runs and continue the others; without it the folder must hold none.
        stop, report, strict: as for `Trainer`.
        on_event: gets an `Event` whenever something happens.
        workers: how many processes train runs side by side; 1: this one.
        plugin_files, device: what `--plugin` and `--device` named, for the workers.
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

    def prepare(self) -> list[Cell]:
        """What must hold before anything is trained: a sound recipe, a free folder, data on this machine (they are fetched
        once, and not by every worker). Returns the cells.

        Raises:
            RecipeError, UserError: something is wrong with the recipe, its data or the folder.
        """
        runs = check(self.recipe, self.registry)
        cells = [Cell(spec, self.folder / spec.name) for spec in runs]
        if not self.resume and any(cell.is_begun for cell in cells):
            raise UserError(
                f"{self.folder} holds runs of this recipe already; add --resume to continue them, or --out DIR for "
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
        for cell in cells:
            cell.require_unchanged(self.registry)
        for data in {str(spec.data["task"]): spec.data for spec in runs}.values():
            cache.prepare(data, self.registry)
        return cells

    def run(self, cells: Sequence[Cell] | None = None) -> list[Path]:
        """Train everything that is not trained yet; returns the runs' folders. `cells` are what `prepare` returned, where
        it was called before.

        Raises:
            RecipeError, UserError: as `prepare`, and where data cannot be read.
            Interrupted: `stop` said so; `resume` continues.
        """
        cells = self.prepare() if cells is None else cells
        self._executor(min(self.workers, len(cells))).run(cells)
        return [cell.folder for cell in cells]

    def _executor(self, workers: int) -> SerialExecutor | LocalExecutor:
        names = ("resume", "strict", "stop", "report", "on_event")
        options = {name: getattr(self, name) for name in names}
        if workers > 1:
            return LocalExecutor(workers=workers, plugin_files=self.plugin_files, device=self.device, **options)
        return SerialExecutor(registry=self.registry, **options)


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
