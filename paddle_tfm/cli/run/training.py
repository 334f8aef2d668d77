"""What `paddle-tfm run RECIPE` does: train, compare, and say what continues it where it was stopped."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paddle_tfm.cli.common import Stop, console, create_registry, fetch_bars, notes, use_device, warn
from paddle_tfm.cli.run import forecast
from paddle_tfm.cli.run.ranks import team
from paddle_tfm.cli.run.request import Request
from paddle_tfm.errors import OF_THE_MACHINE, CutShort, UserError
from paddle_tfm.language import _, english

if TYPE_CHECKING:
    from collections.abc import Sequence

    from paddle_tfm.recipe.expansion import Recipe
    from paddle_tfm.registry import Registry
    from paddle_tfm.sweep.cells import Cell
    from paddle_tfm.sweep.sweep import Sweep


def train(wanted: Request) -> None:
    """Load, check, train and compare; then say where everything is. Of one cell only
    the first three; of a dry run the first two, and what the rest would cost.

    Raises:
        UserError: something is wrong with the recipe, its data, the folder or the options.
    """
    from paddle_tfm import runtime
    from paddle_tfm.recipe.sections.trials import planned

    wanted.require_sound()
    recipe = wanted.recipe()
    registry = create_registry(wanted.plugins)
    executor = _executor(wanted, registry)
    device = use_device(wanted.device)
    folder = wanted.out or recipe.folder()
    at_once = 1 if device.startswith("gpu") or wanted.processes > 1 else runtime.threads()
    workers = wanted.workers or at_once
    if wanted.dry_run:
        from paddle_tfm.comparison.power import power

        at_once = min(workers, _count(wanted, recipe))
        recipe, measured = forecast.probed(recipe, registry, at_once)
        begun = folder if wanted.resume else None
        runs = [run for run in planned(recipe) if not (begun and (begun / run.name / "results.json").exists())]
        with english() if wanted.form else nullcontext():
            sees = power(recipe, folder)
        at_once = min(at_once, max(len(runs), 1))
        forecast.show(measured, runs, at_once, wanted.form, sees, most=recipe.seed_plan() is not None)
        forecast.show_tuning(recipe, wanted.form)
        return

    with team(wanted, recipe, registry) as meet:
        _train_and_compare(wanted, recipe, registry, executor, device, folder, workers, meet)


def _train_and_compare(
    wanted: Request, recipe: Recipe, registry: Registry, executor, device: str, folder: Path, workers: int, meet
) -> None:
    """What `train` does where nothing is wrong with the options, in the process that the user started."""
    from paddle_tfm.sweep.sweep import Sweep

    sweep = Sweep(
        recipe,
        registry,
        folder,
        wanted.resume,
        report=warn,
        strict=wanted.strict,
        workers=min(workers, _count(wanted, recipe)),
        plugin_files=wanted.plugins,
        device=device,
        executor=executor,
        only=wanted.cell,
        cell_options=[f"--device={wanted.device}"] if wanted.device else [],
    )
    with fetch_bars():
        cells = sweep.prepare()  # outside of `Stop`: Ctrl-C ends it at once
    if recipe.seed_plan():
        from paddle_tfm.comparison.recipe_runs import undecided

        sweep.undecided = undecided(recipe, folder, lambda text: notes().print(text, markup=False))
    sweep.others = meet()
    folders = _trained(wanted, sweep, cells)
    if not wanted.cell:
        _compare(wanted, sweep, folders)


def _executor(wanted: Request, registry: Registry):
    """The executor that `--executor` names; None where it is this machine.

    Raises:
        UserError: there is none of that name, its options are wrong, or it says itself what --workers says.
    """
    if wanted.executor is None:
        return None
    from paddle_tfm.recipe import yaml_lines

    executor = registry.build("executor", yaml_lines.value(wanted.executor), "--executor")
    if wanted.workers and executor.at_once is not None:
        text = _("--workers={workers}: {executor} says itself how many runs it trains side by side; leave it out")
        raise UserError(text.format(workers=wanted.workers, executor=wanted.executor))
    return executor


def _count(wanted: Request, recipe: Recipe) -> int:
    """How many runs there will be, at most; of trials, as long as their space is not widened."""
    from paddle_tfm.recipe.sections.trials import planned

    return 1 if wanted.cell else max(1, len(planned(recipe)))


def _trained(wanted: Request, sweep: Sweep, cells: Sequence[Cell]) -> list[Path]:
    """Train all cells under a bar; where that does not end, say what continues it, and exit."""
    from rich.markup import escape

    from paddle_tfm.cli.run.progress import SweepProgress
    from paddle_tfm.sweep.sweep import RunsFailed
    from paddle_tfm.train.trainer import Interrupted

    again = escape(wanted.to_resume())
    try:
        with SweepProgress(notes(), sweep), Stop() as asked:
            sweep.stop = lambda: asked() or (sweep.others is not None and sweep.others.stop())
            return sweep.run(cells)
    except CutShort as end:
        raise UserError(f"{end}. {_(end.how)}: {wanted.to_resume()}") from None
    except OSError as error:
        if error.filename is None or error.errno not in OF_THE_MACHINE:
            raise
        raise UserError(f"{error.filename}: {error.strerror}. {_(CutShort.how)}: {wanted.to_resume()}") from None
    except RunsFailed as end:
        notes().print(f"[red]{escape(str(end))}.[/] {_('Train them again with:')} {again}", soft_wrap=True)
        raise click.exceptions.Exit(1) from None
    except Interrupted as end:
        runs = str(end)
        saved = (
            _("{runs} are saved.") if ", " in runs else _("{runs} is saved.") if runs else _("Nothing was under way.")
        )
        saved = escape(saved.format(runs=runs))
        notes().print(f"[yellow]{saved}[/] {_('Continue with')}: {again}", soft_wrap=True)
        raise click.exceptions.Exit(130) from None


def _compare(wanted: Request, sweep: Sweep, folders: Sequence[Path]) -> None:
    """What the runs say together; exit status 1 if every one of them diverged."""

    # Imported after the training: it needs SciPy, which takes a second to load.
    from paddle_tfm.cli.compare import present
    from paddle_tfm.comparison.claims.values import judge_all
    from paddle_tfm.comparison.recipe_runs import compare_recipe
    from paddle_tfm.plugins import Listeners

    recipe = sweep.recipe
    comparison = compare_recipe(recipe, folders, sweep.folder)
    comparison.claims = judge_all(comparison, recipe.claims(), recipe.arguments[1:])
    Listeners(sweep.registry.plugins, sweep.report, sweep.strict).emit("on_comparison_end", comparison=comparison)
    present(comparison, console(), sweep.registry, form=wanted.form)
    if comparison.runs and all(run.results.get("diverged") for run in comparison.runs):
        notes().print(
            _(
                "[red]Every run diverged.[/] A smaller learning rate (`train.schedule.peak=1e-4,3e-4,1e-3` tries "
                "three) or a longer warmup may help, or `train.clip_norm=1.0`"
            ),
            soft_wrap=True,
        )
        raise click.exceptions.Exit(1)
