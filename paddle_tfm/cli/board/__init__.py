"""`paddle-tfm board DIR`: VisualDL on runs."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import click

from paddle_tfm import runtime
from paddle_tfm.cli.board.pages import CURVES, KNOWN, version
from paddle_tfm.cli.common import echo, warn
from paddle_tfm.errors import UserError
from paddle_tfm.language import _


@click.command(name="board")
@click.argument("folder", default="runs", type=click.Path(path_type=Path), metavar="[DIR]")
@click.option("--port", default=8040, show_default=True, help="Port on this machine.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; the default is this machine only."
)
def command(folder: Path, port: int, host: str) -> None:
    """Start VisualDL on the runs in DIR, all of them overlaid. It opens on the curves, unsmoothed. Ctrl-C ends it.

    \b
    Example:
      paddle-tfm board runs/quickstart
    """
    if not folder.is_dir() or not any(folder.rglob("vdlrecords.*.log")):
        raise UserError(_("{folder}: no curves are here; train first: paddle-tfm run quickstart").format(folder=folder))
    _free(host, port)
    page = CURVES
    if version() != KNOWN:
        page = "/"
        warn(
            f"VisualDL {version()} is served unchanged: this command corrects the pages of {KNOWN} only. `pip install "
            f"visualdl=={KNOWN}` installs that version"
        )
    echo(f"VisualDL on {folder}: http://{host}:{port}{page}  (Ctrl-C ends it)")
    sys.stdout.flush()
    program = "from paddle_tfm.cli.board.pages import main; main()"
    arguments = ["--logdir", str(folder), "--host", host, "--port", str(port), "--disable-telemetry"]
    command = [*runtime.python(), "-c", program, *arguments]
    os.execv(command[0], command)  # to stop us is to stop it


def _free(host: str, port: int) -> None:
    try:
        with socket.create_server((host, port)):
            pass
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        text = _("{host}:{port} cannot be listened on ({reason}); choose another with --port")
        raise UserError(text.format(host=host, port=port, reason=reason)) from error
