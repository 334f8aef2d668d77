"""Cells trained on this machine, side by side in processes, each with its share of the cores.

Small models gain little from a second thread, and everything from a second process. What a run draws does not depend on
who trains it (counter-based random numbers); its sums may differ in the last bit, as with another number of threads.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from paddle_tfm import runtime
from paddle_tfm.errors import UserError
from paddle_tfm.protocols import Outcome
from paddle_tfm.runtime import load_paddle

if TYPE_CHECKING:  # a spawned worker imports this module before Paddle is set up
    from multiprocessing.context import ForkContext, SpawnContext

    from paddle_tfm.sweep.cells import Cell
    from paddle_tfm.sweep.events import Event
    from paddle_tfm.sweep.serial import Serial

POLL_SECONDS = 0.1  # between two looks at the workers
JOIN_SECONDS = 60


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker needs beside its cells."""

    resume: bool
    strict: bool
    plugin_files: Sequence[Path]
    device: str
    parent: int


@dataclass
class Workers:
    """Trains cells in `workers` processes, and relays what they report.

    Args:
        plugin_files, device: what `--plugin` and `--device` named.
        resume, strict, stop, report, on_event: as for `Serial`.
    """

    workers: int
    plugin_files: Sequence[Path]
    device: str
    resume: bool
    strict: bool
    stop: Callable[[], bool]
    report: Callable[[str], None]
    on_event: Callable[[Event], None]

    def run(self, cells: Sequence[Cell]) -> Iterator[Outcome]:
        """Train all cells.

        Raises:
            UserError: what a worker failed with; the others have stopped, and `resume` continues.
            Interrupted: `stop` said so, and every worker saved a checkpoint.
        """
        from paddle_tfm import processes
        from paddle_tfm.train.trainer import Interrupted

        # A fork has Paddle loaded: the first step comes two seconds sooner.
        context: ForkContext | SpawnContext = multiprocessing.get_context("spawn")
        if processes.can_fork():
            context = multiprocessing.get_context("fork")
        pending, messages, halt = context.Queue(), context.Queue(), context.Event()
        for item in (*cells, *[None] * self.workers):  # a worker ends at its None
            pending.put(item)
        settings = WorkerSettings(self.resume, self.strict, tuple(self.plugin_files), self.device, os.getpid())
        arguments = settings, pending, messages, halt
        with runtime.threads_for(self.workers):
            pool = [context.Process(target=_work, args=arguments, daemon=True) for _ in range(self.workers)]
            for process in pool:
                with processes.signals_wait():
                    process.start()
        cell_of = {cell.name: cell for cell in cells}
        failures: list[Exception] = []
        interrupted: list[str] = []
        try:
            for name in self._relay(pool, messages, halt, failures, interrupted):
                yield Outcome(cell_of[name])
        finally:
            halt.set()
            for process in pool:
                process.join(timeout=JOIN_SECONDS)
        if failures:
            raise failures[0]
        if interrupted:
            raise Interrupted(", ".join(sorted(interrupted)))

    def _relay(
        self, pool: Sequence, messages, halt, failures: list[Exception], interrupted: list[str]
    ) -> Iterator[str]:
        """Pass on what the workers report until all have ended; a failure or `stop` halts them. Yields the names of
        runs as they are finished, collects `failures` in the order in which they come, and the names of the runs that
        were `interrupted`."""
        ended = 0
        while ended < self.workers:
            if self.stop() or failures:
                halt.set()
            try:
                kind, content = messages.get(timeout=POLL_SECONDS)
            except queue.Empty:
                if any(process.exitcode not in (None, 0) for process in pool) and not failures:
                    failures.append(UserError(_death(pool)))
                if all(process.exitcode is not None for process in pool):
                    break
                continue
            if kind == "event":
                self.on_event(content)
            elif kind == "report":
                self.report(content)
            elif kind == "finished":
                yield content
            elif kind == "interrupted":
                interrupted.append(content)
            elif kind == "failed":
                failures.append(content)
            ended += kind == "ended"


def _death(pool: Sequence) -> str:
    code = next(process.exitcode for process in pool if process.exitcode)
    cause = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
    return (
        f"a worker process died ({cause}); if memory ran out, use --workers 1. Saved checkpoints remain: add "
        "--resume to continue"
    )


def _work(settings: WorkerSettings, pending, messages, halt) -> None:
    """The life of a worker: cells, until there are none."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the parent decides
    folder = Path()

    def cells() -> Iterator[Cell]:
        nonlocal folder
        for cell in iter(pending.get, None):
            folder = cell.folder
            yield cell

    try:
        load_paddle().set_device(settings.device)
        from paddle_tfm import processes
        from paddle_tfm.train.trainer import Interrupted

        processes.set_threads(runtime.threads())
        try:
            for outcome in _serial(settings, messages, halt).run(cells()):
                messages.put(("finished", outcome.cell.name))
        except Interrupted as interrupted:
            messages.put(("interrupted", str(interrupted)))
        except UserError as error:
            messages.put(("failed", UserError(str(error))))
        except OSError as error:
            messages.put(("failed", UserError(f"{error.filename or folder}: {error.strerror}")))
    except Exception as error:
        from paddle_tfm.plugin_errors import of_plugin

        messages.put(("failed", of_plugin(error) or RuntimeError(f"in a worker process:\n{traceback.format_exc()}")))
    messages.put(("ended", None))


def _serial(settings: WorkerSettings, messages, halt) -> Serial:
    """What trains a worker's cells, and reports to the parent."""
    from paddle_tfm.plugins import create_plugins
    from paddle_tfm.registry import Registry
    from paddle_tfm.sweep.serial import Serial

    return Serial(
        Registry(create_plugins(settings.plugin_files)),
        settings.resume,
        settings.strict,
        stop=lambda: halt.is_set() or os.getppid() != settings.parent,  # an orphan saves and ends
        report=lambda text: messages.put(("report", text)),
        on_event=lambda event: messages.put(("event", event)),
    )
