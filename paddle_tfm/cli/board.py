"""`paddle-tfm board DIR`: VisualDL on runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from paddle_tfm.errors import UserError


@click.command(name="board")
@click.argument("folder", default="runs", type=click.Path(path_type=Path), metavar="[DIR]")
@click.option("--port", default=8040, show_default=True, help="Port on this machine.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; the default is this machine only."
)
def command(folder: Path, port: int, host: str) -> None:
    """Start VisualDL on the runs in DIR: all of them overlaid. Ctrl-C ends it.

    \b
    Example:
      paddle-tfm board runs/quickstart
    """
    if not folder.is_dir() or not any(folder.rglob("vdlrecords.*.log")):
        raise UserError(f"{folder}: no curves are here; train first: paddle-tfm run quickstart")
    click.echo(f"VisualDL on {folder}: http://{host}:{port}  (Ctrl-C ends it)")
    program = "from visualdl.server.app import main; main()"
    arguments = ["--logdir", str(folder), "--host", host, "--port", str(port)]
    raise click.exceptions.Exit(subprocess.call([sys.executable, "-c", program, *arguments]))
