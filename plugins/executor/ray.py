"""The executor that has runs trained as tasks of Ray."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from paddle_tfm.errors import CutShort, UserError
from paddle_tfm.exit_status import how_it_ended, is_signal
from paddle_tfm.protocols import Cell, Executor, Outcome, Supervisor
from paddle_tfm.validators import not_negative, positive
from paddle_tfm_plugins.executor import _ray_task
from paddle_tfm_plugins.executor._ray_cluster import connected, nodes_of, room, too_small
from paddle_tfm_plugins.executor._shell import wrote_last

POLL_SECONDS = 0.2
CLAIM_SECONDS = 120  # until the lock is free of a run that died with its machine: what network file systems take
KILL_SECONDS = 10  # until tasks that are killed have ended; those of a cluster that is lost never do
SEEN_SECONDS = 60  # until files that another machine wrote are seen here
NO_SHARED_FOLDER = (
    "the nodes of a cluster must share the folder of a sweep; where they cannot, the `template` of the executor "
    "`command` may copy it there and back"
)


class Ray(Executor):
    """A task of Ray for each run: wherever a cluster has room for it, or without a cluster on this machine.

    The task starts the run's command in the folder where the sweep was started, so every node needs this folder and
    the same Python. A run that fails costs only itself. One that dies, by a signal, with Ray's worker or with its node,
    is started again where there is room, and resumes from its checkpoint.

    Options:
        num_cpus, num_gpus: what a run takes of its node; so many threads compute it, unless OMP_NUM_THREADS is set.
        retries: how often a run that died is started again.
        at_once: how many runs at the same time; 0: as many as the cluster has room for.
        address: of the cluster, HOST:PORT; without it RAY_ADDRESS, or the cluster on this machine: one is started if
            there is none.

    Raises:
        ValueError: `num_cpus` is not positive; `num_gpus`, `retries` or `at_once` is negative.
    """

    def __init__(
        self,
        num_cpus: float = 1,
        num_gpus: float = 0,
        retries: int = 2,
        at_once: int = 0,
        address: str | None = None,
    ):
        positive(num_cpus=num_cpus)
        not_negative(num_gpus=num_gpus, retries=retries, at_once=at_once)
        self.num_cpus, self.num_gpus, self.retries, self.at_once = num_cpus, num_gpus, retries, at_once
        self.address = address

    def run(self, cells: Sequence[Cell], supervisor: Supervisor) -> Iterator[Outcome]:
        with connected(self.address) as ray:
            yield from _Tasks(ray, self, cells, supervisor).run()


class _Job:
    """A cell and its task. `deaths`: how often it died, the last time at `died_at`."""

    def __init__(self, cell: Cell):
        self.cell, self.deaths, self.died_at = cell, 0, 0.0
        self.task: Any = None
        self.is_asked_to_stop = False

    def is_free(self) -> bool:
        """Whether it can be started: after a death, once nobody holds the run's folder."""
        is_held = self.deaths and self.cell.is_claimed and time.monotonic() < self.died_at + CLAIM_SECONDS
        return not is_held


class _Tasks:
    """The tasks of a sweep's runs, from their start to their end."""

    def __init__(self, ray: ModuleType, executor: Ray, cells: Sequence[Cell], supervisor: Supervisor):
        self.ray, self.executor, self.supervisor = ray, executor, supervisor
        self.waiting, self.jobs = [_Job(cell) for cell in cells], list[_Job]()
        self.pointless = ""  # why no cell can be trained
        self.needs = {"num_cpus": executor.num_cpus, "num_gpus": executor.num_gpus}
        ray.cloudpickle.register_pickle_by_value(_ray_task)  # a worker then imports nothing of paddle_tfm
        # We try again ourselves: Ray would not wait until a dead run's folder is free. A worker may take the next task,
        # for a run is a process of its own; a new worker for each (max_calls=1) takes seconds.
        self.task = ray.remote(max_retries=0, max_calls=0, **self.needs)(_ray_task.train)

    def run(self) -> Iterator[Outcome]:
        """Have all of them trained. Asked to stop, they save a checkpoint; whatever else ends us kills them.

        Raises:
            UserError: why no cell can be trained; those under way have saved a checkpoint.
            CutShort: the cluster is lost, and with it those under way.
        """
        nodes = nodes_of(self.ray)
        if not room(nodes, **self.needs):
            self.supervisor.report(too_small(nodes, **self.needs))
        try:
            while self.jobs or (self.waiting and not self._stops()):
                nodes = nodes_of(self.ray)
                if self._stops():
                    self._stop()
                else:
                    self._start(nodes)
                for job in self._ended():
                    yield from self._outcome(job)
        finally:
            self._kill()
        if self.pointless:
            raise UserError(self.pointless)

    def _stops(self) -> bool:
        return self.supervisor.stop() or bool(self.pointless)

    def _start(self, nodes: list[dict[str, Any]]) -> None:
        """As many as there is room for, and as many again in Ray's queue, so that no node waits for us."""
        most = self.executor.at_once or 2 * max(1, room(nodes, **self.needs))
        free = (job for job in self.waiting if job.is_free())
        for job in [job for job, _ in zip(free, range(most - len(self.jobs)))]:
            self.waiting.remove(job)
            cell = job.cell
            sweep = cell.folder.absolute().parents[cell.name.count("/")]
            named, places = self.task.options(name=cell.name), (str(Path.cwd()), str(sweep))
            job.task = named.remote(list(cell.command), dict(cell.environment), *places, *self.needs.values())
            self.jobs.append(job)

    def _stop(self) -> None:
        for job in self.jobs:
            if not job.is_asked_to_stop:
                job.is_asked_to_stop = True
                self.ray.cancel(job.task)

    def _ended(self) -> list[_Job]:
        """Those whose task has ended after a moment, taken off the list; the others are followed."""
        if not self.jobs:
            time.sleep(POLL_SECONDS)  # until a dead run's folder is free
            return []
        tasks = [job.task for job in self.jobs]
        ready = set(self.ray.wait(tasks, num_returns=len(tasks), timeout=POLL_SECONDS, fetch_local=False)[0])
        for job in self.jobs:
            self.supervisor.follow(job.cell)
        ended = [job for job in self.jobs if job.task in ready]
        self.jobs = [job for job in self.jobs if job.task not in ready]
        return ended

    def _outcome(self, job: _Job) -> Iterator[Outcome]:
        """Of a run whose task has ended; none if it is resumed, now or later."""
        has_died, how, lines = self._end(job)
        if job.cell.is_finished:
            yield Outcome(job.cell)
        elif self._stops():
            return
        elif has_died and job.deaths < self.executor.retries:
            job.deaths, job.died_at = job.deaths + 1, time.monotonic()
            self.waiting.insert(0, job)
            again = f"it is started again ({job.deaths} of {self.executor.retries})"
            self.supervisor.report(f"{job.cell.name}: {how}; {again}")
        else:
            yield Outcome(job.cell, how + wrote_last(lines))

    def _end(self, job: _Job) -> tuple[bool, str, list[str]]:
        """Whether a run died, how it ended, and what it wrote last."""
        errors = self.ray.exceptions
        try:
            status, lines, host = self.ray.get(job.task)
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError) as error:
            return True, f"its worker died ({str(error).strip().splitlines()[0]})", []
        except errors.RayTaskError as error:
            if isinstance(error.cause, NotADirectoryError):
                self.pointless = f"{error.cause}; {NO_SHARED_FOLDER}"
            return False, f"its task failed: {error.cause}", []
        except errors.LocalRayletDiedError:
            raise CutShort("Ray's process on this machine (its raylet) is lost") from None
        except errors.RayError as error:
            return False, f"its task failed: {error}", []
        if status:
            return is_signal(status), f"on {host} its command {how_it_ended(status)}", lines
        if not _is_seen(job.cell):
            self.pointless = (
                f"{job.cell.name} was trained on {host}, but its results are not in {job.cell.folder} here; "
                f"{NO_SHARED_FOLDER}"
            )
        return False, "", []

    def _kill(self) -> None:
        tasks = [job.task for job in self.jobs]
        for task in tasks:
            self.ray.cancel(task, force=True)
        if tasks:
            self.ray.wait(tasks, num_returns=len(tasks), timeout=KILL_SECONDS, fetch_local=False)


def _is_seen(cell: Cell) -> bool:
    """Whether the results of a run are there, or come within the time that a network needs."""
    end = time.monotonic() + SEEN_SECONDS
    while not cell.is_finished and time.monotonic() < end:
        time.sleep(POLL_SECONDS)
    return cell.is_finished
