"""Finding a run that was trained: its folder, its plan, and its checkpoints."""

from __future__ import annotations

from pathlib import Path

from paddle_tfm.errors import UserError
from paddle_tfm.files import folders_with
from paddle_tfm.language import _
from paddle_tfm.recipe import loading as recipes
from paddle_tfm.recipe.plan import Plan, plan_run
from paddle_tfm.recipe.sections.tuning import is_beside
from paddle_tfm.registry import Registry
from paddle_tfm.runs import manifest
from paddle_tfm.runs.identity import missing_plugins, read_identity
from paddle_tfm.units import in_shell


def runs_below(path: Path) -> list[Path]:
    """A folder itself where it is a run; else the runs below it, trials of tuning only if there are no others."""
    if (path / "identity.json").is_file():
        return [path]
    folders = folders_with(path, "identity.json")
    return [folder for folder in folders if not is_beside(folder)] or folders


def find_run(path: Path) -> Path:
    """The folder of a run: `path` itself, or that of the only run below it, beside which trials of tuning do not count.

    Raises:
        UserError: there is none, or there are several (they are listed).
    """
    folders = runs_below(path)
    if len(folders) == 1:
        return folders[0]
    if not folders:
        raise UserError(_("{path}: no run is here; `paddle-tfm ls runs` shows where runs are").format(path=path))
    listing = "".join(f"\n  {folder}" for folder in folders)
    raise UserError(_("{path} holds {number} runs; choose one:").format(path=path, number=len(folders)) + listing)


def plan_of(folder: Path, registry: Registry) -> Plan:
    """The plan of a run's recipe, as its folder has it.

    Raises:
        UserError: a plugin that it was trained with is not loaded, or the recipe is not sound, or of several runs.
    """
    plan = plan_run(recipes.load_single(folder / "recipe.yaml"), registry)
    if plan.problems and (missing := missing_plugins(read_identity(folder), registry)):
        text = _("{folder} was trained with a plugin that is not loaded now; add {missing}")
        raise UserError(text.format(folder=folder, missing=missing))
    return plan.require_sound(str(folder / "recipe.yaml"))


def checkpoint_of(folder: Path, which: str) -> Path:
    """Where a checkpoint of a run is. Raises UserError: it is not there, or damaged."""
    places = {name: manifest.find(folder / "checkpoints" / name) for name in ("best", "last")}
    point = manifest.find(folder / "checkpoints" / which)
    if point is None:
        others = [name for name, place in places.items() if place is not None]
        takes = _("{name}: --checkpoint {name} takes it")
        there = " and ".join(takes.format(name=name) for name in others) or _("none yet")
        text = _("{folder}: no such checkpoint; there is {there}")
        raise UserError(text.format(folder=folder / "checkpoints" / which, there=there))
    if sentence := manifest.damage(point):
        text = _("{sentence}; `paddle-tfm check {folder}` says which checkpoints are whole")
        raise UserError(text.format(sentence=sentence, folder=in_shell(folder)))
    return point
