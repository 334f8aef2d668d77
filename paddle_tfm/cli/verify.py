"""`paddle-tfm verify RUN`: whether a run's files are whole, of this code, and of these texts."""

from __future__ import annotations

from pathlib import Path

import click

from paddle_tfm.cli.common import console, create_registry, plugin_option, use_device
from paddle_tfm.cli.doctor import Report

SENTENCES = {True: "Something is wrong, see above.", False: "All that could be checked is whole."}


@click.command(name="verify")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--without-data", is_flag=True, help="Do not read its texts, which are large or elsewhere.")
@plugin_option
def command(run: Path, without_data: bool, plugins) -> None:
    """Say whether the run in folder RUN is whole: each file of its checkpoints beside the SHA-256 that was saved with
    it, its logs line by line; whether recipe, plugins, Paddle and texts are those that it was trained with; and where
    --resume would continue.

    \b
      ok    as it was saved
      note  worth knowing; nothing is lost by it
      bad   damaged, missing or changed: the sentence names the file

    Nothing is written. What is damaged is passed over by --resume for the checkpoint before it; what was trained with
    other code or texts is loaded with a warning, and never resumed. Exit status: 0 all is right, 1 something is bad, 2
    there is no such run.

    \b
    Examples:
      paddle-tfm verify runs/reverse/default/seed-1
      paddle-tfm verify runs/reverse --without-data
      paddle-tfm verify runs/mine/default/seed-1 --plugin my_norm.py
    """
    registry = create_registry(plugins)
    use_device("cpu")
    from paddle_tfm.train.run import find_run
    from paddle_tfm.train.verify import verify

    report = Report(width=14)
    for finding in verify(find_run(run), registry, not without_data):
        report.add(*finding)
    console().print(SENTENCES[report.broken], highlight=False, soft_wrap=True)
    if report.broken:
        raise click.exceptions.Exit(1)
