"""`paddle-tfm ls runs`: how far runs are, whoever trains them, by their files alone."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paddle_tfm.cli.common import console, echo
from paddle_tfm.cli.ls.runs_table import RunsTable, in_words, notes, summary, table
from paddle_tfm.cli.ls.verdicts import Verdicts, comparison_of, early_verdict, final_verdict
from paddle_tfm.cli.tables import emit, print_table
from paddle_tfm.errors import UserError
from paddle_tfm.language import _, english
from paddle_tfm.sweep.overview import FolderReader, Overview
from paddle_tfm.tabular import Table, column
from paddle_tfm.units import in_shell

if TYPE_CHECKING:
    from paddle_tfm.sweep.overview import SweepRuns
    from paddle_tfm.sweep.standing import Standing

DEFAULT = Path("runs")
EVERY = 2.0  # seconds between two looks


def list_runs(folder: str | None, form: str | None) -> None:
    """All runs now, and what is to be said of them. `folder`: None is `runs`, which may hold none yet."""
    if form is not None:
        with english():
            data = as_data(_overview(folder))
        emit(Table([column(key) for key in (data["runs"] or [{}])[0]], data["runs"]), form, data)
        return
    overview = _overview(folder)
    if not overview.sweeps:
        echo(_("No runs in {folder}. Start one: paddle-tfm run quickstart").format(folder=DEFAULT))
        return
    print_table(table(overview.runs))
    for sentence in (summary(overview), *notes(overview), *Verdicts()(overview)):
        console().print(sentence, markup=False)
    for sweep in overview.sweeps:
        if sweep.is_finished:
            _print_verdict(sweep, len(overview.sweeps) > 1)


def _overview(folder: str | None) -> Overview:
    if folder is None:
        return FolderReader(DEFAULT).look() if DEFAULT.is_dir() else Overview(DEFAULT, [], 1)
    overview = FolderReader(Path(folder)).look()
    _require_runs(overview)
    return overview


def follow_runs(folder: Path) -> None:
    """Show what changes, looking again and again, until all runs are finished; then their verdicts.

    Raises:
        UserError: no run is there, or those that are not finished cannot be read, so that nothing will change.
    """
    from paddle_tfm.cli.run.progress import can_redraw

    reader = FolderReader(folder)
    overview = reader.look()
    _require_runs(overview)
    try:
        with _redrawing(overview) if can_redraw(console()) else nullcontext(Lines().show) as show:
            while any(not run.is_finished and run.state != "unreadable" for run in overview.runs):
                show(overview)
                time.sleep(EVERY)
                overview = reader.look()
            show(overview)
    except KeyboardInterrupt:
        raise click.exceptions.Exit(130) from None
    for sweep in overview.sweeps:
        if sweep.is_finished:
            _print_verdict(sweep, len(overview.sweeps) > 1)
    if not overview.is_finished:
        raise UserError("; ".join(run.note for run in overview.runs if not run.is_finished))


def _require_runs(overview: Overview) -> None:
    """Raises UserError where there are none."""
    if not overview.sweeps:
        raise UserError(
            _("{folder}: no run is here; start one: paddle-tfm run quickstart").format(folder=overview.folder)
        )


@contextmanager
def _redrawing(first: Overview) -> Iterator[Callable[[Overview], None]]:
    """Yields what draws the table of an overview in the place of the one before."""
    from rich.live import Live

    verdicts, title = Verdicts(), str(first.folder)

    def draw(overview: Overview) -> None:
        below = [(sentence, "yellow") for sentence in notes(overview)]
        table = RunsTable(overview, title, [*below, *((text, "bold") for text in verdicts(overview))])
        live.update(table, refresh=True)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the cursor comes back
    shown = RunsTable(first, title)  # at once: a verdict loads SciPy first
    with Live(shown, console=console(), auto_refresh=False, transient=True) as live:
        live.refresh()
        try:
            yield draw
        except KeyboardInterrupt:
            live.transient = False  # what was seen last stays
            raise


class Lines:
    """A line for each run whose state changed, and for each early verdict."""

    def __init__(self) -> None:
        self.states: dict[Path, str] = {}
        self.verdicts, self.said = Verdicts(), list[str]()

    def show(self, overview: Overview) -> None:
        """Print what is new since the overview before."""
        for run in overview.runs:
            if self.states.get(run.folder, "waiting") != run.state:
                self.states[run.folder] = run.state
                echo(in_words(run))
        if (sentences := self.verdicts(overview)) != self.said:
            for sentence in sentences:
                echo(sentence)
            self.said = sentences
        sys.stdout.flush()


def _print_verdict(sweep: SweepRuns, named: bool) -> None:
    """The table and the verdict of a finished sweep; of one among several, the verdict with its name; nothing of trials
    alone, which are compared with nothing."""
    from paddle_tfm.comparison.columns import table as compared

    if not sweep.reported:
        return
    if not named:
        print_table(compared(comparison_of(sweep, sweep.seeds())), _("in `paddle-tfm compare`"))
    console().print(f"{sweep.folder}: {final_verdict(sweep)}" if named else final_verdict(sweep), markup=False)
    if not named:
        report = f"{_('report')}  paddle-tfm compare {in_shell(sweep.folder)}"
        console().print(report, markup=False, soft_wrap=True)


def as_data(overview: Overview) -> dict[str, Any]:
    """All runs, and what is said of the sweeps that they belong to, for programs."""
    return {
        "folder": str(overview.folder),
        "finished": overview.is_finished,
        "counts": dict(overview.counts()),
        "seconds_left": overview.seconds_left(),
        "sweeps": [
            {
                "folder": str(sweep.folder),
                "finished": sweep.is_finished,
                "seeds": sweep.seeds(),
                "complete_seeds": sweep.complete_seeds(),
                "verdict": final_verdict(sweep) if sweep.is_finished else early_verdict(sweep),
                "continue_with": "" if sweep.is_finished else sweep.again(),
            }
            for sweep in overview.sweeps
        ],
        "runs": [_record(run) for run in overview.runs],
    }


def _record(run: Standing) -> dict[str, object]:
    """A run for programs."""
    return {
        "run": run.name,
        "folder": str(run.folder),
        "state": run.state,
        "step": run.step,
        "steps": run.steps,
        "loss": run.loss,
        "tokens_per_second": run.tokens_per_second,
        "seconds_left": run.seconds_left,
        "metric": run.best,
        "valid": run.valid.get(run.best),
        "score": run.scores.get(run.best),
        "note": run.note,
    }
