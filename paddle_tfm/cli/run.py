"""`paddle-tfm run RECIPE`: a click group whose commands are the recipes."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import click

from paddle_tfm.cli import forecast
from paddle_tfm.cli.common import (
    Stop,
    console,
    create_registry,
    device_option,
    notes,
    overrides_argument,
    plugin_option,
    use_device,
    warn,
)
from paddle_tfm.cli.sweep_options import as_overrides, require_new, sweep_options
from paddle_tfm.cli.sweep_options import save as save_recipe
from paddle_tfm.cli.tables import table_options
from paddle_tfm.errors import UserError


class Recipes(click.Group):
    """One command for each shipped recipe; any other name is a recipe file."""

    def list_commands(self, context: click.Context) -> list[str]:
        from paddle_tfm.recipe.loading import shipped

        return sorted(shipped())

    def get_command(self, context: click.Context, name: str) -> click.Command:
        return recipe_command(name)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        from paddle_tfm.recipe.loading import shipped
        from paddle_tfm.recipe.yaml_lines import load_file

        with formatter.section("Recipes"):
            files = sorted(shipped().items())
            formatter.write_dl([(name, str(load_file(file)[0].get("summary", ""))) for name, file in files])

    def shell_complete(self, context: click.Context, incomplete: str):
        from paddle_tfm.cli.common import complete_recipe

        return complete_recipe(context, None, incomplete)


@click.group(
    name="run",
    cls=Recipes,
    subcommand_metavar="RECIPE [a.b=value]... [OPTIONS]",
    options_metavar="",
    invoke_without_command=False,
)
def command() -> None:
    """Train every variant of RECIPE with every seed, then compare them.

    RECIPE is one of the names below or a file of yours. `paddle-tfm run RECIPE --help` says what it compares and how
    long it takes.

    a.b=value sets one setting, a.b=value,value compares several values of it: each combination is a variant, named by
    its values. In a recipe with variants or a grid, each of those is trained with each combination.

    \b
    A comma divides values, but not within brackets, braces and quotes:
      model.norm=layer,rms                                two values
      "model.position=none,{name: shaw, clip: 4}"         one of two with an option
      "model.norm=layer,{encoder: batch, decoder: layer}" one of two by place
      "evaluate.metrics=[bleu, chrf]"                     one value, which is a list
      "evaluate.metrics=[bleu],[bleu, chrf]"              two lists
      "model.position={name: chain, parts: [{name: shaw, clip: 4}, alibi]}"
      "summary='a, b'"                                    one text with a comma

    \b
    Examples:
      paddle-tfm run quickstart
      paddle-tfm run reverse model.norm=rms train.steps=500 --out runs/rms
      paddle-tfm run reverse model.norm=layer,rms,batch model.placement=pre,post --seeds 5
      paddle-tfm run mine.yaml model.dropout=0,0.1,0.3 --baseline 0.1 --save dropout.yaml
      paddle-tfm run mine.yaml --plugin my_norm.py --resume
      paddle-tfm run compare-norms --budget 30m
      paddle-tfm run compare-norms --dry-run
      paddle-tfm run findings/warm-up --fast
    """


def recipe_command(name: str) -> click.Command:
    """The command that runs one recipe; its help is made from the recipe."""

    @click.command(name=name, help=_describe(name))
    @overrides_argument
    @sweep_options
    @click.option("--out", type=click.Path(path_type=Path), help="Where runs go. Default: runs/<recipe>.")
    @click.option(
        "--resume", is_flag=True, help="Continue where an interrupted run stopped; finished runs are skipped."
    )
    @click.option(
        "--fast",
        is_flag=True,
        help="The smaller budget that the recipe states (`fast:`), in runs/<recipe>-fast: no verdict on its claims.",
    )
    @plugin_option
    @device_option
    @click.option(
        "--workers",
        type=click.IntRange(min=1),
        default=None,
        help="Runs trained side by side, each with its share of the threads. Default: as many as there are cores; 1 on "
        "a GPU.",
    )
    @click.option(
        "--executor",
        default=None,
        metavar="NAME|{name: NAME, …}",
        shell_complete=_complete_executor,
        help="Who trains the runs, and where (`paddle-tfm ls components executor`). Default: this machine.",
    )
    @click.option(
        "--cell",
        default=None,
        metavar="VARIANT/seed-N",
        help="Train this run only, and compare nothing: for whoever distributes the runs of a recipe.",
    )
    @click.option("--strict", is_flag=True, help="A listener that fails ends the training.")
    @table_options
    def run(overrides, seeds, baseline, save, **options) -> None:
        require_new(save)
        train(name, [*overrides, *as_overrides(seeds, baseline)], save=save, seeds_chosen=seeds is not None, **options)

    return run


def _complete_executor(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in create_registry().names("executor") if name.startswith(incomplete)]


def _describe(name: str) -> str:
    """What the recipe compares and how long it takes."""
    from paddle_tfm.recipe import loading as recipes
    from paddle_tfm.recipe.seeds import all_seeds

    try:
        recipe = recipes.load(name)
        variants, plan = list(recipe.variants()), recipe.seed_plan()
        seeds = all_seeds(plan or list(recipe.data.get("seeds") or []))
    except (UserError, AttributeError, TypeError):
        return "A recipe with problems: `paddle-tfm check` lists them."
    lines = [f"{recipe.data.get('summary', '')}.", "", "\b"]
    if len(variants) > 1:
        lines.append(f"Compares {len(variants)} variants: {', '.join(variants)}")
        if recipe.data.get("baseline"):
            lines.append(f"Baseline: {recipe.data['baseline']}")
    most = "at most " if plan else ""
    number = f"{most}{len(variants) * len(seeds)} ({most}{len(seeds)} seed{'s' if len(seeds) != 1 else ''} a variant)"
    lines.append(f"Runs: {number}")
    faster = "; with --fast, minutes" if recipe.data.get("fast") else ""
    lines.append(f"Takes: {recipe.data.get('duration') or 'unknown'}{faster}")
    if claims := recipe.data.get("claims"):
        lines.append(f"Claims: {len(claims)}, judged at the end: reproduced, not reproduced or undetermined")
    lines += ["", "\b", "Example:", f"  paddle-tfm run {name} train.steps=100 --out runs/try"]
    return "\n".join(lines)


def train(
    name,
    overrides,
    out,
    resume,
    plugins,
    device,
    strict,
    workers=None,
    form=None,
    executor=None,
    cell=None,
    fast=False,
    save=None,
    dry_run=False,
    budget=None,
    seeds_chosen=False,
) -> None:
    """Load, check, train and compare; then say where everything is. Of one `cell` only the first three; of a dry run
    the first two, and what the rest would cost."""
    from rich.markup import escape

    from paddle_tfm import runtime
    from paddle_tfm.recipe import loading as recipes

    started = time.monotonic()
    forecast.require_alone(dry_run, budget, cell, executor, save)
    recipe = recipes.load(name, overrides, fast)
    registry = create_registry(plugins)
    built = _executor(executor, registry, workers, cell)
    where = use_device(device)
    folder = out or Path("runs") / recipe.name
    num_workers = workers or (1 if where.startswith("gpu") else runtime.threads())
    if budget is not None:
        begun = forecast.recorded_seeds(folder) if resume else None
        if begun is None:
            begun = f"seeds={forecast.seeds_for(budget, recipe, registry, num_workers, seeds_chosen, started)}"
        overrides = [*overrides, begun]
        recipe = recipes.load(name, overrides, fast)
    if dry_run:
        runs = [run for run in recipe.runs() if not (resume and (folder / run.name / "results.json").exists())]
        at_once = min(num_workers, max(len(runs), 1))
        forecast.show(forecast.probed(recipe, registry, at_once), runs, at_once, form)
        return

    from paddle_tfm.cli.data import bars
    from paddle_tfm.cli.progress import SweepProgress
    from paddle_tfm.sweep.overview import FolderReader
    from paddle_tfm.sweep.sweep import RunsFailed, Sweep
    from paddle_tfm.train.trainer import Interrupted

    count = 1 if cell else max(1, len(recipe.expand()[0]))
    num_workers = min(num_workers, count)
    sweep = Sweep(
        recipe,
        registry,
        folder,
        resume,
        report=warn,
        strict=strict,
        workers=num_workers,
        plugin_files=plugins,
        device=where,
        executor=built,
        only=cell,
        cell_options=[f"--device={device}"] if device else [],
    )
    if recipe.seed_plan():
        from paddle_tfm.comparison.of_recipe import undecided

        sweep.undecided = undecided(recipe, folder, notes().print)
    with bars():
        cells = sweep.prepare()  # outside of `Stop`: Ctrl-C ends it at once
    if save is not None:
        save_recipe(recipe, save)
    reader = FolderReader(folder / (cell or ""), (built.at_once if built else None) or num_workers)
    sweep.on_event = progress = SweepProgress(notes(), reader, count)
    try:
        with Stop() as sweep.stop:
            folders = sweep.run(cells)
    except (Interrupted, RunsFailed) as end:
        progress.close()
        options = [*(["--out", str(out)] if out else []), *(f"--plugin={file}" for file in plugins)]
        options += [*([f"--device={device}"] if device else []), *(["--strict"] if strict else [])]
        options += [f"--workers={workers}"] if workers else []
        options += [*([f"--executor={executor}"] if executor else []), *([f"--cell={cell}"] if cell else [])]
        options += ["--fast"] if fast else []
        again = escape(shlex.join(["paddle-tfm", "run", name, *overrides, *options, "--resume"]))
        if isinstance(end, RunsFailed):
            notes().print(f"[red]{escape(str(end))}.[/] Train them again with: {again}", soft_wrap=True)
            raise click.exceptions.Exit(1) from None
        saved = f"{end} is saved" if str(end) else "Nothing was under way"
        notes().print(f"[yellow]{escape(saved)}.[/] Continue with: {again}", soft_wrap=True)
        raise click.exceptions.Exit(130) from None
    finally:
        progress.close()
    if cell:
        return
    # Imported after the training: it needs SciPy, which takes a second to load.
    from paddle_tfm.cli.compare import present
    from paddle_tfm.comparison.claim_values import judge_all
    from paddle_tfm.comparison.of_recipe import compare_recipe

    comparison = compare_recipe(recipe, folders, folder)
    comparison.claims = judge_all(comparison, recipe.claims(), recipe.arguments[1:])
    registry.plugins.emit("on_comparison_end", sweep.report, strict, comparison=comparison)
    present(comparison, console(), registry, form=form)
    if comparison.runs and all(run.results.get("diverged") for run in comparison.runs):
        again = shlex.join(["paddle-tfm", "lr", name, *overrides])
        notes().print(
            "[red]Every run diverged.[/] A smaller learning rate or a longer warmup (`train.schedule`) may help, or "
            f"`train.clip_norm=1.0`; this finds a rate: {escape(again)}",
            soft_wrap=True,
        )
        raise click.exceptions.Exit(1)


def _executor(text: str | None, registry, workers: int | None, cell: str | None):
    """The executor that `--executor` names; None where it is this machine.

    Raises:
        UserError: there is none of that name, its options are wrong, or another option contradicts it.
    """
    if text is None:
        return None
    if cell:
        raise UserError("--cell trains one run, here; --executor distributes all of them: use one of the two")
    from paddle_tfm.recipe import yaml_lines

    executor = registry.build("executor", yaml_lines.value(text), "--executor")
    if workers and executor.at_once is not None:
        raise UserError(f"--workers={workers}: {text} says itself how many runs it trains side by side; leave it out")
    return executor
