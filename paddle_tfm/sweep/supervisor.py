"""A sweep as its executor sees it: what trains cells on this machine, and follows those that are trained elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from paddle_tfm import protocols
from paddle_tfm.registry import Registry
from paddle_tfm.sweep.cells import Cell
from paddle_tfm.sweep.events import Event
from paddle_tfm.sweep.follow import Follower
from paddle_tfm.sweep.serial import Serial
from paddle_tfm.sweep.workers import Workers
from paddle_tfm.train.members import Ranks


@dataclass
class Supervisor(protocols.Supervisor):
    """Has cells trained, by an executor or by itself.

    Args: as for `Sweep`.
    """

    registry: Registry
    resume: bool
    strict: bool
    stop: Callable[[], bool]
    report: Callable[[str], None]
    on_event: Callable[[Event], None]
    workers: int
    plugin_files: Sequence[Path]
    device: str
    others: Ranks | None = None
    followers: dict[str, Follower] = field(default_factory=dict, init=False, repr=False)

    def outcomes(self, cells: Sequence[Cell], executor: protocols.Executor | None) -> Iterator[protocols.Outcome]:
        """How each cell ended, as the executor says it; without one, by `train`."""
        if executor is None:
            return self.train(cells)
        self.followers = {cell.name: Follower(cell, self.registry, self.on_event) for cell in cells}
        return self._followed(executor.run(cells, self))

    def _followed(self, outcomes: Iterator[protocols.Outcome]) -> Iterator[protocols.Outcome]:
        """The outcomes, each after all that its run has to show."""
        for outcome in outcomes:
            self.follow(outcome.cell)
            yield outcome

    def follow(self, cell: protocols.Cell) -> None:
        """Show how far a run is that another process trains."""
        if cell.name in self.followers:
            self.followers[cell.name].look()

    def train(self, cells: Iterable[protocols.Cell]) -> Iterator[protocols.Outcome]:
        """Train cells on this machine: in this process, or `workers` side by side in processes of their own.

        Raises:
            UserError: what is wrong with a run. The others have stopped, and `resume` continues.
            Interrupted: `stop` said so, and a checkpoint of every run is saved.
        """
        ours = cast("list[Cell]", list(cells))
        for cell in ours:
            self.followers.pop(cell.name, None)  # its events come without
        names = ("resume", "strict", "stop", "report", "on_event")
        options = {name: getattr(self, name) for name in names}
        workers = min(self.workers, len(ours))
        if workers > 1:
            return Workers(workers=workers, plugin_files=self.plugin_files, device=self.device, **options).run(ours)
        return Serial(registry=self.registry, others=self.others, **options).run(ours)
