"""`paddle-tfm watch FOLDER`: how far runs are that other processes train, by their files alone."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paddle_tfm.cli.common import console, echo
from paddle_tfm.cli.durations import Duration
from paddle_tfm.cli.tables import emit, print_table, table_options
from paddle_tfm.errors import UserError
from paddle_tfm.units import in_shell

if TYPE_CHECKING:
    from paddle_tfm.sweep.overview import FolderReader, Overview, SweepRuns

EVERY = Duration("500ms, 2s or 1m", least="100ms")


@click.command(name="watch")
@click.argument("folder", default="runs", type=click.Path(path_type=Path), metavar="[FOLDER]")
@click.option("--every", default="2s", show_default=True, type=EVERY, metavar="TIME", help="Between two looks.")
@click.option("--once", is_flag=True, help="Say how things stand now, and end. So do --json and --csv.")
@table_options
def command(folder: Path, every: float, once: bool, form: str | None) -> None:
    """How far the runs in FOLDER are: a run, a sweep, or a folder of several. Default: runs.

    It reads files and writes none: from another terminal, or from any machine that shares the folder, whoever trains
    the runs. It ends with a verdict when all of them are finished; Ctrl-C ends it before, and nothing else. It says
    which runs have died, and how to continue them. Without a terminal it prints a line whenever a run's state changes.

    \b
    Examples:
      paddle-tfm watch runs/quickstart
      paddle-tfm watch runs/quickstart/post-norm/seed-1 --every 10s
      paddle-tfm watch --once
      paddle-tfm watch runs/quickstart --json | jq '.runs[] | select(.state == "killed")'

    \b
    States of a run:
      waiting     nobody has begun it
      running     with its loss, its speed and the time left; starting: no step yet, scoring: all steps are done
      done        with its score; diverged: its loss became no number
      stopped     its process ended in order, and --resume continues it
      killed      its process is gone: --resume continues at its last checkpoint
      silent      another machine claimed it, and nothing is heard from there
      unreadable  its files cannot be read
    """
    from paddle_tfm.sweep.overview import FolderReader

    reader = FolderReader(folder)
    if once or form:
        _print(_looked(reader), form)
        return
    overview = _looked(reader)
    try:
        overview = _follow(reader, overview, every)
    except KeyboardInterrupt:
        raise click.exceptions.Exit(130) from None
    for sweep in overview.sweeps:
        _print_verdict(sweep, len(overview.sweeps) > 1)


def _looked(reader: FolderReader) -> Overview:
    """Raises UserError where there is nothing to watch."""
    overview = reader.look()
    if not overview.sweeps:
        raise UserError(f"{reader.folder}: no run is here; `paddle-tfm ls runs` shows where they are")
    return overview


def _follow(reader: FolderReader, overview: Overview, every: float) -> Overview:
    """Show what changes until all runs are finished."""
    from paddle_tfm.cli.progress import can_redraw

    return (_redraw if can_redraw(console()) else _lines)(reader, overview, every)


def _redraw(reader: FolderReader, overview: Overview, every: float) -> Overview:
    from rich.live import Live

    from paddle_tfm.cli.early_verdict import Verdicts
    from paddle_tfm.cli.runs_table import RunsTable, notes

    verdicts = Verdicts()

    def drawn() -> RunsTable:
        below = [(sentence, "yellow") for sentence in notes(overview)]
        return RunsTable(overview, str(reader.folder), [*below, *((text, "bold") for text in verdicts(overview))])

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the cursor comes back
    shown = RunsTable(overview, str(reader.folder))  # at once: a verdict loads SciPy first
    try:
        with Live(shown, console=console(), auto_refresh=False, transient=True) as live:
            live.refresh()
            while not overview.is_finished:
                shown = drawn()
                live.update(shown, refresh=True)
                time.sleep(every)
                overview = reader.look()
    except KeyboardInterrupt:
        console().print(shown)
        raise
    return overview


def _lines(reader: FolderReader, overview: Overview, every: float) -> Overview:
    from paddle_tfm.cli.early_verdict import Verdicts
    from paddle_tfm.cli.runs_table import in_words

    states: dict[Path, str] = {}
    verdicts, said = Verdicts(), list[str]()
    while True:
        for run in overview.runs:
            if states.get(run.folder, "waiting") != run.state:
                states[run.folder] = run.state
                echo(in_words(run))
        if (sentences := verdicts(overview)) != said:
            for sentence in sentences:
                echo(sentence)
            said = sentences
        sys.stdout.flush()
        if overview.is_finished:
            return overview
        time.sleep(every)
        overview = reader.look()


def _print(overview: Overview, form: str | None) -> None:
    """All runs, and what is to be said of them."""
    from paddle_tfm.cli.early_verdict import Verdicts
    from paddle_tfm.cli.runs_data import as_data
    from paddle_tfm.cli.runs_table import notes, summary, table
    from paddle_tfm.tabular import Table, column

    if form is not None:
        data = as_data(overview)
        emit(Table([column(key) for key in data["runs"][0]], data["runs"]), form, data)
        return
    print_table(table(overview.runs))
    for sentence in (summary(overview), *notes(overview), *Verdicts()(overview)):
        console().print(sentence, markup=False)
    for sweep in overview.sweeps:
        if sweep.is_finished:
            _print_verdict(sweep, len(overview.sweeps) > 1)


def _print_verdict(sweep: SweepRuns, named: bool) -> None:
    """The table and the verdict of a finished sweep; of one among several, the verdict with its name; nothing of trials
    alone, which are compared with nothing."""
    from paddle_tfm.cli.early_verdict import comparison_of, final_verdict
    from paddle_tfm.comparison.columns import table

    if not sweep.reported:
        return
    if not named:
        print_table(table(comparison_of(sweep, sweep.seeds())), "in `paddle-tfm compare`")
    console().print(f"{sweep.folder}: {final_verdict(sweep)}" if named else final_verdict(sweep), markup=False)
    if not named:
        console().print(f"report  paddle-tfm compare {in_shell(sweep.folder)}", markup=False, soft_wrap=True)
