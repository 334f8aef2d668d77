"""The executor that runs a command line for each run."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress

from paddle_tfm.exit_status import how_it_ended
from paddle_tfm.language import _
from paddle_tfm.protocols import Cell, Executor, Outcome, Supervisor
from paddle_tfm.validators import positive
from paddle_tfm_plugins.executor._shell import PLACE, filled, wrote_last

POLL_SECONDS = 0.2
SAVING_SECONDS = 60  # for a checkpoint, after the shell that started the run is gone
LAST_LINES = 12  # of a failed command's output


class Command(Executor):
    """A command line for each run: a process of its own, here or wherever the command brings it.

    In `template`, `{cell}` is the command that trains the run. Outside of quotes it stands as its words; within quotes
    it is quoted once more, as text for another shell: `bash -c '{cell}'`, `ssh node1 'cd /work && {cell}'`,
    `sbatch --wait --wrap '{cell}'`. A run is finished when its results.json is there. A command that fails costs only
    its run; one that ends well without results, as `sbatch` without `--wait` does, is waited for until they are there.

    Options:
        template: a line for `sh`, in the folder of the sweep. at_once: how many commands at the same time.

    Raises:
        ValueError: the template has no {cell}, or a quote stays open; `at_once` is not positive.
    """

    def __init__(self, template: str = PLACE, at_once: int = 1):
        positive(at_once=at_once)
        if PLACE not in template:
            raise ValueError(
                _("`template` must hold {place}, where the command of a run goes, but is {template!r}").format(
                    place=PLACE, template=template
                )
            )
        try:
            shlex.split(template)
        except ValueError as error:
            raise ValueError(_("`template` is no line for a shell: {error}").format(error=error)) from error
        self.template, self.at_once = template, at_once

    def run(self, cells: Sequence[Cell], supervisor: Supervisor) -> Iterator[Outcome]:
        waiting, jobs = deque(cells), list[_Job]()
        try:
            while jobs or (waiting and not supervisor.stop()):
                while waiting and len(jobs) < self.at_once and not supervisor.stop():
                    jobs.append(_Job(waiting.popleft(), self.template, supervisor))
                time.sleep(POLL_SECONDS)
                for job in list(jobs):
                    supervisor.follow(job.cell)
                    if job.has_ended():
                        jobs.remove(job)
                        if job.cell.is_finished or not supervisor.stop():
                            yield Outcome(job.cell, "" if job.cell.is_finished else job.failure())
        finally:
            for job in jobs:
                job.send(signal.SIGKILL)


class _Job:
    """The command of one cell, started in a process group of its own."""

    def __init__(self, cell: Cell, template: str, supervisor: Supervisor):
        self.cell, self.supervisor = cell, supervisor
        self.stopped_at, self.is_queued = 0.0, False
        self.output = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the job
        line = filled(template, cell.command)
        # A session of its own: Ctrl-C reaches us alone, and the run is asked to stop once.
        self.process = subprocess.Popen(
            line, shell=True, env=cell.environment, stdout=self.output, stderr=self.output, start_new_session=True
        )

    def has_ended(self) -> bool:
        """Whether the command has ended and nothing is to be waited for. Asks it to stop if the user did."""
        if self.supervisor.stop() and not self.stopped_at:
            self.stopped_at = time.monotonic()
            self.send(signal.SIGTERM)
        if self.process.poll() is None:
            return False
        if self.stopped_at:  # a shell may end before the run that it started, which saves a checkpoint
            return not self.send(0) or time.monotonic() > self.stopped_at + SAVING_SECONDS
        if self.process.returncode or self.cell.is_finished:
            return True
        if not self.is_queued:
            self.is_queued = True
            self.supervisor.report(
                f"{self.cell.name}: its command has ended without results, so it may wait in a queue; waiting for its "
                "results (Ctrl-C ends that)"
            )
        return False

    def send(self, number: int) -> bool:
        """Send a signal to the command and all that it started; whether any of it is left."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)
            return True
        return False

    def failure(self) -> str:
        """How the command ended, with the last lines of its output."""
        self.output.seek(0)
        lines = self.output.read().decode("utf-8", errors="replace").splitlines()[-LAST_LINES:]
        return f"its command {how_it_ended(self.process.returncode)}{wrote_last(lines)}"
