"""The executor of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paddle_tfm.protocols import Cell, Executor, Outcome, Supervisor


class Local(Executor):
    """This machine: as many runs side by side as `--workers` says, each in a process with its share of the threads.

    One after another where there is one worker. A run that fails stops the others, each with a checkpoint, so that
    a mistake is read at once and not after a night; `--resume` continues. A process that is killed, as for want of
    memory, costs the run that it trained: the others are trained, and `--resume` trains that one again.
    """

    def run(self, cells: Sequence[Cell], supervisor: Supervisor) -> Iterator[Outcome]:
        return supervisor.train(cells)
