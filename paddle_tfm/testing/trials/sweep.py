"""Small real sweeps that an executor is tried on: three seeds, eight steps each."""

from __future__ import annotations

import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from paddle_tfm import runtime
from paddle_tfm.errors import UserError
from paddle_tfm.files import sha256
from paddle_tfm.plugins import create_plugins
from paddle_tfm.protocols import Executor
from paddle_tfm.recipe import loading
from paddle_tfm.registry import Registry
from paddle_tfm.runs.logs import read_rows
from paddle_tfm.sweep.cells import Cell
from paddle_tfm.sweep.claim import is_claimed
from paddle_tfm.sweep.sweep import Sweep
from paddle_tfm.testing.trials import orders
from paddle_tfm.testing.trials.interrupted import TINY
from paddle_tfm.train.trainer import Interrupted

OVERRIDES = ("seeds=[1, 2, 3]", *TINY)
NUM_WORKERS = 2
LIMIT_SECONDS = 300  # of a sweep: its executor waits for what never comes
# The command of a cell as another process runs it: its start is written down, and it ends if nobody waits for it.
PROGRAM = """
import os, signal, sys, time
starts, name, limit, variable = sys.argv[1:5]
with open(starts, "a") as file:
    print(time.time(), name, file=file)
signal.alarm(int(limit))
os.environ |= {"OMP_NUM_THREADS": "1", variable: "1"}
output = os.open(starts + ".output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.dup2(output, 1), os.dup2(output, 2)
from paddle_tfm.cli import main
main(sys.argv[5:])
"""


@dataclass(frozen=True)
class Session:
    """What an executor did with cells, and what it left.

    Args:
        cells: names of those that it was given. outcomes: (name, failure), as they came. error: what it raised, if the
            user may see that. starts: (seconds after the user's stop, or 0 without one; name), as runs began.
        finished: names of the runs that have results. saved: of the others that have begun: (steps in the log, step of
            the checkpoint).
        running: names of those that are being trained when the executor has returned.
        numbers: name → what a training computed, of those finished.
    """

    cells: Sequence[str]
    outcomes: Sequence[tuple[str, str]]
    error: str
    starts: Sequence[tuple[float, str]]
    finished: frozenset[str]
    saved: Mapping[str, tuple[int, int]]
    running: Sequence[str]
    numbers: Mapping[str, Mapping[str, str]]


class TrialSweep:
    """A sweep for one executor, in one or more sessions, in a folder of its own that lasts as long as this object."""

    def __init__(self):
        self.temporary = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.folder, self.stop_time = Path(self.temporary.name), 0.0

    def session(
        self,
        executor: Executor | None,
        workers: int = NUM_WORKERS,
        stop: bool = False,
        slow: bool = False,
        killed: str = "",
    ) -> Session:
        """Have the cells that are not finished trained by an executor; None: by the engine itself.

        Args:
            stop: whether the user stops once a run has begun. slow, killed: `orders.order`.
        """
        orders.order(self.folder, slow, killed)
        (self.folder / orders.STARTS).write_text("", "utf-8")
        plugin = Path(orders.__file__)
        registry = Registry(create_plugins([plugin]))
        recipe, runs = loading.load("base", OVERRIDES), self.folder
        sweep = Sweep(recipe, registry, runs, resume=True, strict=True, workers=workers, plugin_files=[plugin])
        sweep.executor, sweep.stop = executor, lambda: bool(self.stop_time)
        cells = [self._counted(cell) for cell in sweep.prepare()]
        waiting, outcomes, error = sweep.unfinished(cells), [], ""
        self.stop_time = 0.0
        with _limit(), self._user(stop):
            try:
                for outcome in sweep.outcomes(waiting):
                    outcomes.append((outcome.cell.name, outcome.failure))
            except (UserError, Interrupted) as raised:
                error = str(raised) or type(raised).__name__
        running = [cell.name for cell in cells if is_claimed(cell.folder)]
        finished = [cell for cell in cells if cell.is_finished]
        return Session(
            [cell.name for cell in waiting],
            outcomes,
            error,
            list(self._starts()),
            frozenset(cell.name for cell in finished),
            {cell.name: _saved(cell) for cell in cells if cell.is_begun and not cell.is_finished},
            running,
            {cell.name: _numbers(cell) for cell in finished},
        )

    def _counted(self, cell: Cell) -> Cell:
        words = [str(self.folder / orders.STARTS), cell.name, str(LIMIT_SECONDS), orders.COMMAND]
        arguments = cell.command[cell.command.index("paddle_tfm") + 1 :]
        return replace(cell, command=[*runtime.python(), "-c", PROGRAM, *words, *arguments])

    @contextmanager
    def _user(self, stops: bool) -> Iterator[None]:
        """Within this block, a user who stops the sweep after a run's first step; whether anybody asks, or not."""
        is_over = threading.Event()

        def watch() -> None:
            while not self.stop_time and not is_over.wait(0.05):
                if any(file.stat().st_size for file in self.folder.glob("*/*/metrics.jsonl")):
                    self.stop_time = time.time()

        thread = threading.Thread(target=watch, daemon=True)
        if stops:
            thread.start()
        try:
            yield
        finally:
            is_over.set()
            if stops:
                thread.join()

    def _starts(self) -> Iterator[tuple[float, str]]:
        for line in (self.folder / orders.STARTS).read_text("utf-8").splitlines():
            seconds, _, name = line.partition(" ")
            yield (float(seconds) - self.stop_time if self.stop_time else 0.0), name


@lru_cache(maxsize=1)
def reference() -> Mapping[str, Mapping[str, str]]:
    """Name → the numbers of a run trained in this process, one after another."""
    return TrialSweep().session(None, workers=1).numbers


def _numbers(cell: Cell) -> dict[str, str]:
    """All that a training computes: file → its content or hash."""
    names = ("metrics.jsonl", "predictions.tsv", "checkpoints/best/model.safetensors")
    return {name: sha256(cell.folder / name) for name in names}


def _saved(cell: Cell) -> tuple[int, int]:
    from paddle_tfm.runs import manifest

    rows, last = read_rows(cell.folder / "metrics.jsonl"), manifest.find(cell.folder / "checkpoints" / "last")
    step = 0 if last is None else manifest.read_state(last).step
    return (max((row["step"] for row in rows), default=0), step)


@contextmanager
def _limit() -> Iterator[None]:
    """Raises TimeoutError in a block that takes longer than `LIMIT_SECONDS`."""
    before: Callable | int | None = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(LIMIT_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _too_long(number: int, frame: object) -> None:
    raise TimeoutError(f"the executor has not ended after {LIMIT_SECONDS} seconds")
