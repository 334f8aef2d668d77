"""`paddle-tfm check RECIPE --resume`: a run is trained in one go, and once killed and resumed, each by processes of its
own, as a user has them; its files must be the same to the bit."""

from __future__ import annotations

import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paddle_tfm import runtime
from paddle_tfm.cli.common import console, note, use_device
from paddle_tfm.errors import UserError, unknown
from paddle_tfm.files import read_json
from paddle_tfm.language import _
from paddle_tfm.recipe import loading
from paddle_tfm.testing.same_runs import differences
from paddle_tfm.testing.trials import interrupted

if TYPE_CHECKING:
    from paddle_tfm.recipe.expansion import RunSpec
    from paddle_tfm.registry import Registry

STEPS, EVALUATIONS = 24, 3


def check_resume(
    recipe: str,
    overrides: Sequence[str],
    cell: str | None,
    registry: Registry,
    plugins: Sequence[Path],
    device: str | None,
) -> None:
    """Say whether a run of a recipe, killed and resumed, is the one that was let alone.

    Args:
        cell: the run; None: the first.
    Raises:
        UserError: it cannot be trained, or ends before it can be killed.
        click.exceptions.Exit: it is another run.
    """
    loaded = loading.load(recipe, overrides)
    run = _run(loaded.expand()[0], cell)
    use_device(device)
    from paddle_tfm.sweep.check import check

    check(loaded, registry, only=[run.name])
    lengths = _lengths(run.data)
    every = lengths["evaluate.every"]
    kill = every + max(1, every // 2)  # between two checkpoints
    if kill >= lengths["train.steps"]:
        text = _("--resume needs two evaluations and a step between them; raise train.steps above {kill}")
        raise UserError(text.format(kill=kill))
    settings = [f"{name}={value}" for name, value in lengths.items() if value != _written(run.data, name)]
    options = [*(f"--plugin={file}" for file in plugins), *([f"--device={device}"] if device else [])]
    command = [*runtime.python(), "-m", "paddle_tfm", "run", recipe, *overrides, *settings, *options]
    command += ["--resume", f"--cell={run.name}"]
    with tempfile.TemporaryDirectory() as temporary:
        whole, killed = (Path(temporary) / name for name in ("whole", "killed"))
        note(_("trained in one go"))
        _train(run.name, [*command, f"--out={whole}"])
        _require_steps(whole / run.name, run.name, kill)
        note(_("killed after step {kill}").format(kill=kill))
        _train(run.name, [*command, f"--out={killed}", f"--plugin={interrupted.__file__}"], kill)
        note(_("resumed, to its end"))
        _train(run.name, [*command, f"--out={killed}"])
        _say(
            _("{name}, killed after step {kill} and resumed").format(name=run.name, kill=kill),
            differences(whole / run.name, killed / run.name),
        )


def _run(runs: Sequence[RunSpec], name: str | None) -> RunSpec:
    names = [run.name for run in runs]
    if name is not None and name not in names:
        raise UserError(f"--cell: {unknown('run', name, names)}")
    return runs[names.index(name)] if name else runs[0]


def _written(data: Mapping[str, Any], name: str) -> int:
    section, _, key = name.partition(".")
    return int(data[section][key])


def _lengths(data: Mapping[str, Any]) -> dict[str, int]:
    """How long the run is made: no more than `STEPS`, with three evaluations at least."""
    steps = min(STEPS, _written(data, "train.steps"))
    every = max(1, min(steps // EVALUATIONS, _written(data, "evaluate.every")))
    return {"train.steps": steps, "evaluate.every": every}


def _require_steps(folder: Path, name: str, kill: int) -> None:
    """Raises UserError where the training in one go ended before step `kill`."""
    results = read_json(folder / "results.json", ("steps", "diverged"))
    if results["steps"] < kill:
        text = _(" ({why}; a smaller learning rate may help)")
        why = text.format(why=results["diverged"]) if results["diverged"] else ""
        text = _("{name} ends at step {step}{why}, before it is to be killed, after step {kill}")
        raise UserError(text.format(name=name, step=results["steps"], why=why, kill=kill))


def _train(name: str, command: Sequence[str], kill: int = 0) -> None:
    """Train by a process of its own, which is killed after step `kill` unless that is 0. Raises UserError where it ends
    otherwise."""
    environment = runtime.users_environment() | {interrupted.VARIABLE: str(kill)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace")
    if ended.returncode != (-signal.SIGKILL if kill else 0):
        status = _("it ended with status {status}").format(status=ended.returncode)
        said = ended.stderr.strip().rpartition("\n")[2] or status
        raise UserError(_("{name}: the training failed: {said}").format(name=name, said=said))


def _say(what: str, sentences: Sequence[str]) -> None:
    if not sentences:
        same = _("parameters, optimizer state, metrics, predictions and results are the same to the bit")
        console().print(
            _("{what}: {same}.").format(what=what, same=same), highlight=False, markup=False, soft_wrap=True
        )
        return
    console().print(_("{what}, is another run:").format(what=what), highlight=False, markup=False, soft_wrap=True)
    for sentence in sentences:
        console().print(f"  {sentence}", highlight=False, markup=False, soft_wrap=True)
    raise click.exceptions.Exit(1)
