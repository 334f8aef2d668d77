"""paddle_tfm from Python: recipes, models and trained runs without the command line.

Example::

    import paddle_tfm

    model = paddle_tfm.build_model("base", ["model.norm=rms"], source_vocabulary=100, target_vocabulary=100)
    runs = paddle_tfm.run("reverse", ["train.steps=300"], out="runs/reverse")
    print(paddle_tfm.load_run(runs[0]).translate(["1 2 3"]))
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paddle_tfm import runtime
from paddle_tfm.data.vocabulary import SPECIAL
from paddle_tfm.errors import RecipeError, UserError
from paddle_tfm.plugins import create_plugins
from paddle_tfm.recipe import loading as recipes
from paddle_tfm.registry import Registry

if TYPE_CHECKING:
    from paddle_tfm.model.transformer import Transformer
    from paddle_tfm.recipe.expansion import Recipe
    from paddle_tfm.train.run import Run


def create_registry(plugins: Iterable[str | Path] = ()) -> Registry:
    """The components of all installed plugins, and those of the plugin files `plugins`.

    Raises:
        UserError: a file cannot be loaded.
    """
    runtime.load_paddle()
    return Registry(create_plugins(plugins))


def load_recipe(name: str, overrides: Sequence[str] = ()) -> Recipe:
    """A shipped recipe or a recipe file, merged with its base and with overrides such as ``"model.norm=rms"``.

    Raises:
        UserError: there is no such recipe, or it is not YAML.
    """
    return recipes.load(name, overrides)


def build_model(
    name: str = "base",
    overrides: Sequence[str] = (),
    *,
    source_vocabulary: int,
    target_vocabulary: int,
    seed: int = 1,
    plugins: Iterable[str | Path] = (),
) -> Transformer:
    """The model of the first variant of a recipe, with initial values drawn by `seed`.

    Args:
        source_vocabulary, target_vocabulary: sizes V, with the four special tokens.
    Raises:
        RecipeError: all problems of the recipe.
    """
    registry = create_registry(plugins)
    from paddle_tfm.model.build import build
    from paddle_tfm.recipe.plan import plan_run

    for side, size in (("source_vocabulary", source_vocabulary), ("target_vocabulary", target_vocabulary)):
        if not isinstance(size, int) or size <= len(SPECIAL):
            raise UserError(f"`{side}` must be a number of pieces above {len(SPECIAL)}, but is {size!r}")
    recipe = recipes.load(name, overrides)
    recipe.require_one_model()
    plan = plan_run(recipe.runs()[0], registry).require_sound(name)
    try:
        return build(plan.sound_model, source_vocabulary, target_vocabulary, seed)
    except RecipeError as error:
        raise RecipeError(name, plan.located(error.problems)) from error


def run(
    name: str,
    overrides: Sequence[str] = (),
    *,
    out: str | Path | None = None,
    resume: bool = False,
    workers: int = 1,
    executor: object = None,
    fast: bool = False,
    progress: bool = True,
    plugins: Iterable[str | Path] = (),
) -> list[Path]:
    """Train every variant of a recipe with every seed; returns the runs' folders.

    Args:
        out: their parent folder; default runs/<recipe>. resume: continue the runs in it. workers: the number of runs
            trained at the same time, each in its own process (with more than one, a script needs
            `if __name__ == "__main__":`). executor: who trains the runs instead, a name or ``{"name": …, option: …}``.
            fast: the smaller budget that the recipe states, in runs/<recipe>-fast.
        progress: show on standard error what `paddle-tfm run` shows: evaluations, on a terminal a table of the runs.
    Raises:
        UserError: the recipe or its data has a problem, `out` holds runs already, or runs failed.
    """
    plugins = list(plugins)
    registry, device = create_registry(plugins), runtime.load_paddle().get_device()
    from paddle_tfm.sweep.sweep import Sweep

    recipe, files = recipes.load(name, overrides, fast), tuple(map(Path, plugins))
    folder = Path(out) if out else recipe.folder()
    sweep = Sweep(
        recipe, registry, folder, resume, report=warnings.warn, workers=workers, plugin_files=files, device=device
    )
    sweep.executor = None if executor is None else registry.build("executor", executor)
    cells = sweep.prepare()
    if recipe.seed_plan():
        from paddle_tfm.comparison.recipe_runs import undecided

        sweep.undecided = undecided(recipe, folder, warnings.warn)
    if not progress:
        return sweep.run(cells)
    from paddle_tfm.cli.common import notes
    from paddle_tfm.cli.run.progress import SweepProgress

    with SweepProgress(notes(), sweep):
        return sweep.run(cells)


def load_run(path: str | Path, checkpoint: str = "best", plugins: Iterable[str | Path] = ()) -> Run:
    """A trained run: ``.translate(texts)``, ``.hypotheses(texts, nbest=5, prefix="…")`` with scores and pieces,
    ``.model``, ``.codec``, ``.settings``. Warns if plugins or Paddle changed since it was trained.

    Args:
        path: its folder, or a folder with no other run below it. checkpoint: best | last.
    Raises:
        UserError: no run is there, or its files are broken.
    """
    registry = create_registry(plugins)
    from paddle_tfm.train.run import load_run as load

    return load(path, registry, checkpoint, warnings.warn)
