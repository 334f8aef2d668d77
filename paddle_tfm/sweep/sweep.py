"""All runs of a recipe: the same data, the same order, the same budget for every variant."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from paddle_tfm.data import datasets
from paddle_tfm.errors import UserError
from paddle_tfm.recipe.expansion import Recipe
from paddle_tfm.registry import Registry
from paddle_tfm.sweep.cells import Cell
from paddle_tfm.sweep.check import check, expected_failures
from paddle_tfm.sweep.events import Event
from paddle_tfm.sweep.local import LocalExecutor
from paddle_tfm.sweep.serial import SerialExecutor
from paddle_tfm.train.about import write_command


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
        """What must hold before anything is trained: a sound recipe, a free folder, data on this machine (they are
        fetched once, and not by every worker). Returns the cells.

        Raises:
            RecipeError, UserError: something is wrong with the recipe, its data or the folder.
        """
        plans = check(self.recipe, self.registry)
        cells = [Cell(plan.run, self.folder / plan.run.name) for plan in plans]
        if not self.resume and any(cell.is_begun for cell in cells):
            raise UserError(
                f"{self.folder} holds runs of this recipe already; add --resume to continue them, or --out DIR for "
                "another place (in Python resume=True, or out=DIR)"
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{self.folder} cannot be written: {error.strerror}") from error
        if not os.access(self.folder, os.W_OK):
            raise UserError(
                f"{self.folder} cannot be written; choose another place with --out DIR (from Python: out=DIR)"
            )
        for sentence in expected_failures(plans):
            self.report(sentence)
        for cell, plan in zip(cells, plans, strict=True):
            cell.require_unchanged(plan)
        for plan in {str(plan.run.data["task"]): plan for plan in plans}.values():
            datasets.fetch_all(plan)
        return cells

    def run(self, cells: Sequence[Cell] | None = None) -> list[Path]:
        """Train everything that is not trained yet; returns the runs' folders. `cells` are what `prepare` returned,
        where it was called before.

        Raises:
            RecipeError, UserError: as `prepare`, and where data cannot be read.
            Interrupted: `stop` said so; `resume` continues.
        """
        cells = self.prepare() if cells is None else cells
        plugins = [f"--plugin={file}" for file in self.plugin_files]
        write_command(self.folder, ["paddle-tfm", "run", *self.recipe.arguments, *plugins])
        self._executor(min(self.workers, len(cells))).run(cells)
        return [cell.folder for cell in cells]

    def _executor(self, workers: int) -> SerialExecutor | LocalExecutor:
        names = ("resume", "strict", "stop", "report", "on_event")
        options = {name: getattr(self, name) for name in names}
        if workers > 1:
            return LocalExecutor(workers=workers, plugin_files=self.plugin_files, device=self.device, **options)
        return SerialExecutor(registry=self.registry, **options)
