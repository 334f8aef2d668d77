"""Who trains the runs of a sweep, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from paddle_tfm.protocols.component import Component


class Cell:
    """One run of a sweep, a variant under a seed, as an executor sees it. Implemented by the engine.

    name: variant/seed-n. folder: where its run goes.
    command: what trains it, or resumes it, in a process of its own: in the current folder, on any machine that has the
        same files; on one that does not see the folder of the sweep it ends with status 2 and a sentence. Status 0: the
        run is finished. SIGTERM ends it after its next step, with a checkpoint. A second
        process of the same cell finds the run finished, or says who trains it and ends with status 2.
    environment: the variables for that process, without those that paddle_tfm chose for this machine.
    is_finished: whether its folder holds results: only that makes a run finished, and no exit status.
    is_claimed: whether a process trains it now, as far as its file system carries locks.
    """

    name: str
    folder: Path
    command: Sequence[str]
    environment: Mapping[str, str]
    is_finished: bool
    is_claimed: bool


class Outcome(NamedTuple):
    """How a cell ended. `failure` says why it has no results, as a sentence without the cell's name; "" if it has."""

    cell: Cell
    failure: str = ""


class Supervisor:
    """The sweep as an executor sees it. Implemented by the engine.

    workers: how many runs `train` trains side by side (`--workers`). stop: whether the user asked to stop, to be asked
    a few times a second. report: takes a sentence for the user.
    """

    workers: int
    stop: Callable[[], bool]
    report: Callable[[str], None]

    def follow(self, cell: Cell) -> None:
        """Show how far a run is that another process trains, by what is in its folder; call it now and then."""
        raise NotImplementedError

    def train(self, cells: Iterable[Cell]) -> Iterator[Outcome]:
        """Train cells on this machine, `workers` side by side; `stop` is looked after. Raises: what ends a sweep."""
        raise NotImplementedError


class Executor(Component):
    """Who trains the runs of a sweep, and where. It changes no number, so no recipe names it: `--executor` does.

    Invariances: each cell is trained once, with the numbers of every other executor.

    Example::

        import subprocess, time
        from paddle_tfm.protocols import Executor, Outcome

        class OneByOne(Executor):
            at_once = 1

            def run(self, cells, supervisor):
                for cell in cells:
                    if supervisor.stop():
                        return
                    process = subprocess.Popen(cell.command, env=cell.environment)
                    while process.poll() is None:
                        if supervisor.stop():
                            process.terminate()
                        time.sleep(0.2)
                    if not supervisor.stop():
                        yield Outcome(cell, "" if cell.is_finished else f"it ended with status {process.returncode}")
    """

    kind: ClassVar[str] = "executor"
    at_once: int | None = None  # cells that it trains side by side; None: as many as --workers says; 0: not known

    def run(self, cells: Sequence[Cell], supervisor: Supervisor) -> Iterator[Outcome]:
        """Train cells, none of which is finished, and yield an outcome of each that ended. A failure costs its cell
        only; one that makes the others pointless is raised. After `stop`, start none, let those under way save a
        checkpoint, and return when they have: what has no outcome then is resumed later. Adding seeds calls it again.

        Raises:
            UserError: why no cell can be trained. CutShort: why none can be now, so that they are to be resumed.
        """
        raise NotImplementedError
