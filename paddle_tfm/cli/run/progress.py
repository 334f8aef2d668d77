"""Progress of a sweep: on a terminal a table of its runs below the lines that say what happened, in a notebook the
table alone; without either, lines alone."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.markup import escape

from paddle_tfm import units
from paddle_tfm.cli.ls.runs_table import RunsTable
from paddle_tfm.cli.ls.verdicts import early_verdict
from paddle_tfm.colours import colour
from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.runs.sweep_files import read_command, variant_numbers

if TYPE_CHECKING:
    from paddle_tfm.sweep.events import Event
    from paddle_tfm.sweep.overview import Overview
    from paddle_tfm.sweep.sweep import Sweep

LOOKS_PER_SECOND = 1
SHOWN_PADDING = 0.1  # of batches; less of it costs little


def can_redraw(console: Console) -> bool:
    """Whether lines that stand there can be written again: on a terminal, but not in a CI's log."""
    return console.is_terminal and not console.is_dumb_terminal and not os.environ.get("CI")


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, and not what a cell starts by `!`."""
    python = sys.modules.get("IPython")
    return python is not None and getattr(python.get_ipython(), "kernel", None) is not None


class CellTable:
    """A table below the cell of a notebook, drawn again every second. Rich's `Live` would need ipywidgets there."""

    def __init__(self, get_renderable: Callable[[], RunsTable | str]):
        self.get_renderable, self.stopped = get_renderable, threading.Event()
        self.thread = threading.Thread(target=self._redraw, daemon=True)

    def start(self) -> None:
        from IPython.display import display

        self.handle = display(self, display_id=True)
        self.thread.start()

    def stop(self) -> None:
        """Draw it a last time: it stays."""
        self.stopped.set()
        self.thread.join()
        self.handle.update(self)

    def _redraw(self) -> None:
        while not self.stopped.wait(1 / LOOKS_PER_SECOND):
            self.handle.update(self)

    def _repr_html_(self) -> str:
        page = Console(file=io.StringIO(), record=True, width=100, force_jupyter=False)
        page.print(self.get_renderable())
        return page.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


class SweepProgress:
    """Shows the events of `sweep` while it is entered; the table is read from the folders of the runs, whoever trains
    them."""

    def __init__(self, console: Console, sweep: Sweep):
        from paddle_tfm.sweep.overview import FolderReader

        at_once = sweep.executor.at_once if sweep.executor else None
        self.reader = FolderReader(
            sweep.folder / (sweep.only or ""), sweep.workers if at_once is None else max(1, at_once)
        )
        self.console, self.sweep = console, sweep
        self.finished = 0
        self.under_way: set[str] = set()
        self.complete: int | None = None  # seeds under which every run had results, when that was last said
        self.reading = threading.Lock()
        self.live: Live | CellTable | None = None

    def __enter__(self) -> SweepProgress:
        self.sweep.on_event = self
        if in_notebook():
            self.console, self.live = Console(quiet=True), CellTable(self._table)
            self.live.start()
        elif can_redraw(self.console):
            self.live = Live(
                console=self.console, get_renderable=self._table, refresh_per_second=LOOKS_PER_SECOND, transient=True
            )
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None

    def __call__(self, event: Event) -> None:
        """Show what happened."""
        getattr(self, f"_{event.kind}")(event)

    def _table(self) -> RunsTable | str:
        overview = self._overview()
        return RunsTable(overview) if overview else ""

    def _overview(self) -> Overview | None:
        """None while nothing can be read: the sweep itself says why, if it matters."""
        try:
            with self.reading:
                return self.reader.look()
        except (UserError, OSError):
            return None

    def _finished(self, event: Event) -> None:
        self.finished += 1
        self.console.print(f"[dim]{_('{run} is finished already').format(run=escape(event.card.name))}[/]")

    def _start(self, event: Event) -> None:
        card = event.card
        if self.complete is None and self.live is not None:
            self.complete = self._complete(self._overview())
        resumed = _(", resumed at step {step}").format(step=f"{card.step:,}") if card.step else ""
        padding = _(", {share} padding").format(share=f"{card.padding:.0%}") if card.padding >= SHOWN_PADDING else ""
        number = self.finished + len(self.under_way) + 1
        listed = read_command(self.sweep.folder).runs  # they may become more or fewer
        runs = max(number, 1 if self.sweep.only else len(listed))
        self.under_way.add(card.name)
        variant = variant_numbers(self.reader.folder).get(card.name.partition("/")[0])
        style = "cyan" if variant is None else colour(variant)
        self.console.print(
            f"[bold]{number}/{runs}[/] [{style}]{escape(card.name)}[/]  "
            + _("{parameters} parameters, {examples} training examples, {steps} steps").format(
                parameters=f"{card.parameters:,}", examples=f"{card.examples:,}", steps=f"{card.steps:,}"
            )
            + f"{padding}{resumed}"
        )

    def _evaluation(self, event: Event) -> None:
        card, metrics = event.card, event.data
        best = units.metric_and_test(card.best)[0]
        further = [name for name in metrics if name.startswith(f"{best}{units.AT}")]
        shown = [name for name in dict.fromkeys(["loss", best, *list(metrics)[:3], *further]) if name in metrics]
        unit = {name: card.units.get(units.metric_and_test(name)[0], "") for name in shown}
        texts = [f"{name} {units.text(metrics[name], unit[name])}" for name in shown]
        self.console.print(f"  {escape(card.name)}  {_('step')} {card.step:>6,}  {_('valid')}  {'  '.join(texts)}")

    def _end(self, event: Event) -> None:
        self.finished += 1
        self.under_way.discard(event.card.name)
        if event.data["diverged"]:
            self.console.print(
                _("  [red]{run} diverged:[/] {why}; a smaller learning rate may help").format(
                    run=escape(event.card.name), why=escape(event.data["diverged"])
                )
            )
        if self.live is not None:
            self._early_verdict()

    def _early_verdict(self) -> None:
        """What the seeds so far say, whenever a seed is complete."""
        overview = self._overview()
        complete = self._complete(overview)
        if overview and complete > (self.complete or 0):
            self.complete = complete
            if sentence := early_verdict(overview.sweeps[0]):
                self.console.print(f"[bold]{escape(sentence)}[/]")

    def _complete(self, overview: Overview | None) -> int:
        return len(overview.sweeps[0].complete_seeds()) if overview and overview.sweeps else 0
