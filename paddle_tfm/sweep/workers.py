"""Cells trained on this machine, side by side in processes, each with its share of the cores.

Small models gain little from a second thread, and everything from a second process. What a run draws does not depend on
who trains it (counter-based random numbers); its sums may differ in the last bit, as with another number of threads.

A worker has a pipe of its own, and shares no queue and no lock: one that is killed, at whatever moment, keeps nothing
that another waits for.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING

from paddle_tfm import runtime
from paddle_tfm.errors import OF_THE_MACHINE, CutShort, UserError
from paddle_tfm.exit_status import how_it_ended
from paddle_tfm.protocols import Outcome
from paddle_tfm.runtime import load_paddle, variable

if TYPE_CHECKING:  # a spawned worker imports this module before Paddle is set up
    from multiprocessing.process import BaseProcess

    from paddle_tfm.sweep.cells import Cell
    from paddle_tfm.sweep.events import Event

POLL_SECONDS = 0.1  # between two looks at what the user wants
JOIN_SECONDS = 60


@dataclass
class CellWorker:
    """A process that trains the cells that its pipe brings, one after another. None in the pipe: there are no more,
    and the one under way is to save a checkpoint and stop. cell: what it trains now."""

    process: BaseProcess
    pipe: Connection
    cell: Cell | None = None

    def give(self, cell: Cell | None) -> None:
        """Have it train `cell`; None: have it end."""
        self.cell = cell or self.cell
        with suppress(OSError):  # it died: its pipe says so when it is read
            self.pipe.send(cell)

    def death(self) -> str:
        """How it died, as a sentence without a subject."""
        self.process.join(JOIN_SECONDS)
        return how_it_ended(self.process.exitcode or 0, "use fewer --workers")


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
    pool: list[CellWorker] = field(default_factory=list, init=False, repr=False)
    failures: list[Exception] = field(default_factory=list, init=False, repr=False)
    interrupted: list[str] = field(default_factory=list, init=False, repr=False)

    def run(self, cells: Sequence[Cell]) -> Iterator[Outcome]:
        """Train all cells. A worker that is killed costs the cell that it trained, and another takes its place.

        Raises:
            UserError: what a worker failed with; the others have stopped, and `resume` continues.
            Interrupted: `stop` said so, and every worker saved a checkpoint.
        """
        from paddle_tfm.train.trainer import Interrupted

        waiting, halted = deque(cells), False
        try:
            with runtime.threads_for(self.workers):
                for _ in range(self.workers):
                    self._start(waiting)
            while self.pool:
                if not halted and (self.stop() or self.failures):
                    halted = True
                    waiting.clear()
                    for worker in self.pool:
                        worker.give(None)
                readable = set(wait([worker.pipe for worker in self.pool], POLL_SECONDS))
                for worker in [each for each in self.pool if each.pipe in readable]:
                    yield from self._heard(worker, waiting)
        finally:
            for worker in self.pool:  # only after an exception: none is left otherwise
                worker.pipe.close()
            for worker in self.pool:
                worker.process.join(JOIN_SECONDS)
                worker.process.kill()  # what it saved last remains
        if self.failures:
            raise self.failures[0]
        if self.interrupted:
            raise Interrupted(", ".join(sorted(self.interrupted)))

    def _start(self, waiting: deque[Cell]) -> None:
        """Start one more worker, with its first cell."""
        from paddle_tfm import processes

        # A fork has Paddle loaded: the first step comes two seconds sooner.
        forks = processes.can_fork()
        context = multiprocessing.get_context("fork" if forks else "spawn")
        ours, theirs = context.Pipe()
        # A fork has our ends of all pipes, and must close them: else no pipe ends with this process.
        inherited = [ours, *(each.pipe for each in self.pool)] if forks else []
        options = tuple(self.plugin_files), self.device, self.resume, self.strict
        process = context.Process(target=_work, args=(theirs, inherited, os.getpid(), *options), daemon=True)  # type: ignore[attr-defined]
        with processes.signals_wait(), nullcontext() if forks else variable("PYTHONSAFEPATH", "1"):  # as runtime.python
            process.start()
        theirs.close()  # so that the worker alone has it, and its death ends the pipe
        self.pool.append(CellWorker(process, ours))
        self.pool[-1].give(waiting.popleft() if waiting else None)

    def _heard(self, worker: CellWorker, waiting: deque[Cell]) -> Iterator[Outcome]:
        """Take one message of a worker: pass it on, give it its next cell, or replace it where it died."""
        try:
            kind, content = worker.pipe.recv()
        except (EOFError, OSError):
            yield from self._ended(worker, waiting)
            return
        if kind == "event":
            self.on_event(content)
        elif kind == "report":
            self.report(content)
        elif kind == "finished":
            cell, worker.cell = worker.cell, None
            worker.give(waiting.popleft() if waiting else None)
            if cell is not None:
                yield Outcome(cell)
        elif kind == "interrupted":
            worker.cell = None
            self.interrupted.append(content)
        elif kind == "failed":
            worker.cell = None
            self.failures.append(content)

    def _ended(self, worker: CellWorker, waiting: deque[Cell]) -> Iterator[Outcome]:
        """A worker's pipe has ended: as it should, or because it was killed."""
        self.pool.remove(worker)
        worker.pipe.close()
        if worker.cell is not None:
            if waiting:
                with runtime.threads_for(self.workers):
                    self._start(waiting)
            yield Outcome(worker.cell, f"the process that trained it {worker.death()}")
        worker.process.join(JOIN_SECONDS)


def _work(
    pipe: Connection,
    inherited: Sequence[Connection],
    parent: int,
    plugin_files: Sequence[Path],
    device: str,
    resume: bool,
    strict: bool,
) -> None:
    """The life of a worker: cells, until there are none."""
    for each in inherited:
        each.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the parent decides
    folder = Path()

    def cells() -> Iterator[Cell]:
        nonlocal folder
        with suppress(EOFError, ConnectionError):  # the parent died
            for cell in iter(pipe.recv, None):
                folder = cell.folder
                yield cell

    def tell(kind: str, content: object) -> None:
        with suppress(ConnectionError):  # the parent died: `stop` says so after the next step
            pipe.send((kind, content))

    try:
        load_paddle().set_device(device)
        from paddle_tfm import processes
        from paddle_tfm.plugins import create_plugins
        from paddle_tfm.registry import Registry
        from paddle_tfm.sweep.serial import Serial
        from paddle_tfm.train.trainer import Interrupted

        processes.set_threads(runtime.threads())
        try:
            # While a cell is trained, the pipe brings nothing but None, or its end. An orphan saves and ends.
            def stop() -> bool:
                return pipe.poll() or os.getppid() != parent

            registry, report = Registry(create_plugins(plugin_files)), partial(tell, "report")
            for outcome in Serial(registry, resume, strict, stop, report, partial(tell, "event")).run(cells()):
                tell("finished", outcome.cell.name)
        except Interrupted as interrupted:
            tell("interrupted", str(interrupted))
        except CutShort as error:
            tell("failed", CutShort(str(error)))
        except UserError as error:
            tell("failed", UserError(str(error)))
        except OSError as error:
            kind = CutShort if error.errno in OF_THE_MACHINE else UserError
            tell("failed", kind(f"{error.filename or folder}: {error.strerror}"))
    except Exception as error:
        from paddle_tfm.plugin_errors import of_plugin

        tell("failed", of_plugin(error) or RuntimeError(f"in a worker process:\n{traceback.format_exc()}"))
