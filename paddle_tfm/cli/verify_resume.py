"""`paddle-tfm verify-resume RECIPE`: proves that a recipe, with its plugins, resumes to the same bits."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paddle_tfm.cli.common import (
    console,
    create_registry,
    device_option,
    note,
    overrides_argument,
    plugin_option,
    recipe_argument,
    use_device,
)
from paddle_tfm.errors import UserError, unknown
from paddle_tfm.units import listed

if TYPE_CHECKING:
    from paddle_tfm.recipe.expansion import RunSpec

STEPS, EVALUATIONS = 24, 3


@click.command(name="verify-resume")
@recipe_argument
@overrides_argument
@click.option("--cell", metavar="VARIANT/seed-N", help="Which run of the recipe. Default: the first.")
@click.option(
    "--steps", type=click.IntRange(min=2), default=STEPS, show_default=True, help="Train no more than so many."
)
@click.option(
    "--kill-at",
    "kills",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="N",
    help="Kill it after step N (repeatable, in order). Default: between two checkpoints.",
)
@click.option("--keep", type=click.Path(path_type=Path), metavar="DIR", help="Keep both runs in this new folder.")
@plugin_option
@device_option
def command(recipe: str, overrides, cell, steps: int, kills, keep, plugins, device) -> None:
    """Prove that a run of RECIPE resumes exactly, with the plugins that it uses: train it in one go; train it again,
    killed (SIGKILL) after step N and resumed; and compare all parameters, the optimizer's state, metrics.jsonl,
    predictions and results, bit by bit.

    What differs is named, the first tensor of each file: a component that keeps numbers between steps outside of its
    parameters and buffers, or draws random numbers from a generator of its own, is not resumed. Register such numbers
    with `register_buffer`, and draw by `paddle_tfm.randomness`.

    The run is shortened to --steps with three evaluations; its test split is scored as ever. Exit status: 0 the same
    bits, 1 they differ, 2 it cannot be trained.

    \b
    Examples:
      paddle-tfm verify-resume reverse
      paddle-tfm verify-resume mine.yaml --plugin my_norm.py --kill-at 13
      paddle-tfm verify-resume compare-norms --cell batch/seed-1 --kill-at 9 --kill-at 20
    """
    from paddle_tfm import runtime
    from paddle_tfm.recipe import loading
    from paddle_tfm.testing.resume_trial import ResumeTrial

    loaded = loading.load(recipe, overrides)
    run = _run(loaded.expand()[0], cell)
    registry = create_registry(plugins)
    use_device(device)
    from paddle_tfm.sweep.check import check

    check(loaded, registry, only=[run.name])
    lengths = _lengths(run.data, steps)
    kills = sorted(kills) or [lengths["evaluate.every"] + max(1, lengths["evaluate.every"] // 2)]
    if kills[-1] >= lengths["train.steps"]:
        raise UserError(f"--kill-at {kills[-1]}: must be below the {lengths['train.steps']:,} steps; raise --steps")
    settings = [f"{name}={value}" for name, value in lengths.items() if value != _written(run.data, name)]
    options = [*(f"--plugin={file}" for file in plugins), *([f"--device={device}"] if device else [])]
    words = [recipe, *overrides, *settings, *options, "--resume", f"--cell={run.name}"]
    command = [*runtime.python(), "-m", "paddle_tfm", "run", *words]
    with tempfile.TemporaryDirectory() as temporary:
        if keep is not None:
            keep.mkdir(parents=True)
        trial = ResumeTrial(command, runtime.users_environment(), run.name, keep or Path(temporary), note)
        _say(run.name, kills, trial.differences(kills))


def _run(runs: Sequence[RunSpec], name: str | None) -> RunSpec:
    names = [run.name for run in runs]
    if name is not None and name not in names:
        raise UserError(f"--cell: {unknown('run', name, names)}")
    return runs[names.index(name)] if name else runs[0]


def _written(data: Mapping[str, Any], name: str) -> int:
    section, _, key = name.partition(".")
    return int(data[section][key])


def _lengths(data: Mapping[str, Any], most: int) -> dict[str, int]:
    """How long the run is made: no more than `most` steps, with three evaluations at least."""
    steps = min(most, _written(data, "train.steps"))
    every = max(1, min(steps // EVALUATIONS, _written(data, "evaluate.every")))
    return {"train.steps": steps, "evaluate.every": every}


def _say(name: str, kills: Sequence[int], sentences: Sequence[str]) -> None:
    where = f"step{'s' * (len(kills) > 1)} {listed(kills)}"
    if not sentences:
        same = "parameters, optimizer state, metrics, predictions and results are the same to the bit"
        console().print(f"{name}, killed after {where} and resumed: {same}.", highlight=False, soft_wrap=True)
        return
    console().print(f"{name}, killed after {where} and resumed, is another run:", highlight=False, soft_wrap=True)
    for sentence in sentences:
        console().print(f"  {sentence}", highlight=False, markup=False, soft_wrap=True)
    raise click.exceptions.Exit(1)
