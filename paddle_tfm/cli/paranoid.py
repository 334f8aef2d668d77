"""`paddle-tfm run RECIPE --paranoid`: everything is trained twice, and must be the same to the bit."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from paddle_tfm.cli.common import Stop, console, note, notes
from paddle_tfm.cli.run_request import Request
from paddle_tfm.errors import UserError
from paddle_tfm.files import content, refuse_link, remove, write_whole

POLL_SECONDS = 0.1  # between two looks at the second training


def second_folder(folder: Path) -> Path:
    """Where the runs of `folder` are trained again."""
    return folder.with_name(f"{folder.name}-again")


def require_room(wanted: Request, folder: Path) -> None:
    """Raises UserError, before anything is trained, where the second folder is not free, or is a link."""
    again = second_folder(folder)
    refuse_link(again)
    if not wanted.resume and again.exists():
        raise UserError(
            f"--paranoid trains everything again in {again}, which is there already; remove it, or add --resume to "
            "continue what is in it"
        )


def train_again(wanted: Request, folder: Path, runs: Sequence[Path]) -> bool:
    """Train what `wanted` says once more, by a process of its own, with other hashes of texts and nothing left over
    from the first; and say which of the runs in `folder` are the same to the bit, and which cannot be, because they did
    not begin alike. Returns whether all are. The second folder is removed then, of one that was there already its runs
    alone, and else kept.

    Raises:
        UserError: the second training failed.
    """
    from rich.markup import escape

    from paddle_tfm import runtime
    from paddle_tfm.testing.same_runs import differences
    from paddle_tfm.train import solutions
    from paddle_tfm.train.changes import rounding
    from paddle_tfm.train.identity import read_identity

    again = second_folder(folder)
    was_there = again.exists()
    if (solved := folder / solutions.FILE).is_file():  # seconds that are measured again would be others
        again.mkdir(exist_ok=True)
        write_whole(again / solutions.FILE, content(solved), shared=True)
    note(f"trained again, in {again}")
    words = replace(wanted, out=again, paranoid=False, form=None).words_to_resume()
    command = [*runtime.python(), "-m", "paddle_tfm", *words]
    process = subprocess.Popen(command, env=runtime.users_environment(), stdout=subprocess.DEVNULL)
    with Stop() as stop:
        asked = False
        while process.poll() is None:
            if stop() and not asked:
                asked = True
                process.terminate()  # it saves a checkpoint, as this one would
            time.sleep(POLL_SECONDS)
    if stop():
        again_with = escape(wanted.to_resume())
        notes().print(f"[yellow]The second training is stopped.[/] Continue both with: {again_with}", soft_wrap=True)
        raise click.exceptions.Exit(130)
    relative = [run.relative_to(folder) for run in runs]
    if missing := [str(run) for run in relative if not (again / run / "results.json").is_file()]:
        raise UserError(f"--paranoid: the second training of {', '.join(missing)} failed, as is said above")
    unlike = {run: differences(run, again / run.relative_to(folder)) for run in runs}
    for run, sentences in unlike.items():
        name = run.relative_to(folder)
        if reasons := rounding(read_identity(run), read_identity(again / name)):
            unlike[run] = reasons
            _print(
                f"{name}: its last bits prove nothing, since {'; '.join(reasons)}. Train both again, without --resume"
            )
            continue
        if not sentences:
            _print(f"{name}, trained twice: the same to the bit.")
            continue
        _print(f"{name}, trained twice, is another run the second time ({again / name}):")
        for sentence in sentences:
            _print(f"  {sentence}")
    if any(unlike.values()):
        return False
    for ours in [again / name for name in relative] if was_there else [again]:  # what else is there may be another's
        remove(ours)
    return True


def _print(sentence: str) -> None:
    console().print(sentence, highlight=False, markup=False, soft_wrap=True)
