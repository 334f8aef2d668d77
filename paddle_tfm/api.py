"""paddle_tfm from Python: recipes, models and trained runs without the command line.

Example::

    import paddle_tfm

    model = paddle_tfm.build_model("base", ["model.norm=rms"], source_vocabulary=100, target_vocabulary=100)
    runs = paddle_tfm.run("reverse", ["train.steps=300", "model.norm=layer,rms"], out="runs/reverse")
    print(paddle_tfm.compare(runs))
    print(paddle_tfm.load_run(runs[0]).translate(["1 2 3"]))

In a notebook `run` shows a table of the runs while they are trained, and what `run` and `compare` return is shown as a
table with its figure.
"""

from __future__ import annotations

import os
import warnings
from base64 import b64encode
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from paddle_tfm import runtime
from paddle_tfm.data.vocabulary import SPECIAL
from paddle_tfm.errors import RecipeError, UserError
from paddle_tfm.language import _
from paddle_tfm.plugins import create_plugins
from paddle_tfm.recipe import loading as recipes
from paddle_tfm.registry import Registry

if TYPE_CHECKING:
    from paddle_tfm.comparison.table import Row
    from paddle_tfm.model.transformer import Transformer
    from paddle_tfm.recipe.expansion import Recipe
    from paddle_tfm.tabular import Table
    from paddle_tfm.train.run import Run

WIDTH = 120  # characters of a table as text, as in a pipe


class Runs(list[Path]):
    """The folders of trained runs, as `run` returns them; a notebook shows their comparison. `plugins`: the files that
    they need."""

    plugins: Sequence[str | Path] = ()

    def _repr_html_(self) -> str:
        return compare(self, plugins=self.plugins)._repr_html_()


class Compared:
    """A comparison of finished runs, as `compare` returns it: ``str()`` is the table and the verdict, and a notebook
    shows them with the figure.

    table: a row a variant, the best first (``.records()``, ``.csv()``, ``.latex(name)``). verdict: one sentence.
    page, figure: the report as HTML, and its figure as PNG.
    """

    def __init__(self, table: Table[Row], verdict: str, page: Path, figure: Path):
        self.table, self.verdict, self.page, self.figure = table, verdict, page, figure

    def __str__(self) -> str:
        lines = ("".join(text for text, _ in line) for line in self.table.lines(WIDTH))
        return "\n".join([*lines, self.verdict])

    def _repr_html_(self) -> str:
        figure = b64encode(self.figure.read_bytes()).decode()
        return (
            f"{self.table.html()}\n<p>{escape(self.verdict)}</p>\n"
            f'<img alt="" style="max-width: 100%" src="data:image/png;base64,{figure}">'
        )


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
            text = _("`{side}` must be a number of pieces above {number}, but is {size!r}")
            raise UserError(text.format(side=side, number=len(SPECIAL), size=size))
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
) -> Runs:
    """Train every variant of a recipe with every seed; returns the runs' folders, a list.

    Args:
        out: their parent folder; default runs/<recipe>. resume: continue the runs in it. workers: the number of runs
            trained at the same time, each in its own process (with more than one, a script needs
            `if __name__ == "__main__":`). executor: who trains the runs instead, a name or ``{"name": …, option: …}``.
            fast: the smaller budget that the recipe states, in runs/<recipe>-fast.
        progress: show on standard error what `paddle-tfm run` shows: evaluations, on a terminal a table of the runs;
            in a notebook that table, below the cell.
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
    with ExitStack() as stack:
        if progress:
            from paddle_tfm.cli.common import notes
            from paddle_tfm.cli.run.progress import SweepProgress

            stack.enter_context(SweepProgress(notes(), sweep))
        runs = Runs(sweep.run(cells))
    runs.plugins = plugins
    return runs


def compare(
    folders: Sequence[str | Path],
    *,
    out: str | Path | None = None,
    metric: str | None = None,
    baseline: str | None = None,
    plugins: Iterable[str | Path] = (),
) -> Compared:
    """Compare finished runs, and write their report, as `paddle-tfm compare` does.

    Args:
        folders: runs, or folders of several. out: where the report goes; default: the folder that holds all of them.
        metric: which one decides; default: what the recipe calls best. baseline: the variant that the others are
            compared with; default: the recipe's.
    Raises:
        UserError: there is no finished run, or the report cannot be written.
    """
    registry, paths = create_registry(plugins), [Path(folder) for folder in folders]
    from paddle_tfm.comparison.columns import table
    from paddle_tfm.comparison.recorded_runs import compare_recorded
    from paddle_tfm.comparison.report.report import Report
    from paddle_tfm.comparison.verdict import verdict

    if not paths:
        raise UserError(_("`folders` names no run, so there is nothing to compare"))
    folder = Path(out) if out else Path(os.path.commonpath([path.absolute() for path in paths]))
    comparison = compare_recorded(paths, folder, metric, baseline, warnings.warn)
    try:
        written = Report(comparison, registry, warnings.warn).write()
    except OSError as error:
        text = _("{folder}: the report is not written: {strerror}; `out` names another folder")
        raise UserError(text.format(folder=folder, strerror=error.strerror)) from error
    return Compared(table(comparison), verdict(comparison), written["page"], written["figure"])


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
