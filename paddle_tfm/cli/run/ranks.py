"""Several processes, the ranks, that train each run of a recipe together: of `--nproc`, `--nodes` or a launcher.

Rank 0 is the process that the user started with `--node 0`, or without `--nodes`; of a launcher's processes the one
that it numbers 0. It does all that one process does; the others only compute gradients. With `--nproc` each machine's
further ranks are forks of the process that was started there.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from typing import TYPE_CHECKING

import click

from paddle_tfm.cli.common import note
from paddle_tfm.cli.run.further_ranks import INTERRUPTED, fork, serve_here
from paddle_tfm.errors import UserError
from paddle_tfm.exit_status import how_it_ended

if TYPE_CHECKING:
    from paddle_tfm.cli.run.request import Request
    from paddle_tfm.recipe.expansion import Recipe
    from paddle_tfm.registry import Registry
    from paddle_tfm.train.ranks.meeting import Facts
    from paddle_tfm.train.ranks.rank_zero import Ranks


def rank_options(function: Callable) -> Callable:
    """The options that say which processes train each run."""
    options = (
        click.option(
            "--nproc",
            type=click.IntRange(min=1),
            default=None,
            help="Processes on this machine that train each run together: each computes some rows of every batch "
            "with its share of the threads; at most 8 for each core. The result is the same, but for "
            "rounding. Leave it out under Paddle's launcher, Slurm or mpirun.",
        ),
        click.option(
            "--nodes",
            type=click.IntRange(min=1, max=1024),
            default=None,
            help="Machines that train each run together: give the same command on each, with a --node of its own.",
        ),
        click.option(
            "--node",
            type=click.IntRange(min=0),
            default=None,
            help="Which of the machines this is, from 0. Runs are written on machine 0; the others need no data.",
        ),
        click.option(
            "--address",
            default=None,
            metavar="HOST:PORT",
            help="Where machine 0 listens, the same on every machine; for Slurm and mpirun too. Whoever reaches it can "
            "change numbers: keep it within a private network.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


class Team:
    """The ranks of a command, in rank 0. `meet` waits for the others."""

    def __init__(self, size: int, facts: Facts, others: Ranks | None = None, pids: list[int] | None = None):
        self.size, self.facts, self.others, self.pids = size, facts, others, pids or []

    def meet(self) -> Ranks | None:
        """What rank 0 has of the others; None where there are none. Raises UserError: one is not as it should be."""
        if self.others is not None:
            self.others.meet(self.facts, note, self._require_alive)
        return self.others

    def _require_alive(self) -> None:
        """Raises UserError: a rank of this machine ended before it came."""
        for pid in list(self.pids):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self.pids.remove(pid)
                raise UserError(
                    f"process {pid} of this machine, one of {self.size} ranks, "
                    f"{how_it_ended(os.waitstatus_to_exitcode(status), 'use fewer: --nproc')} before the training began"
                )

    def end(self, how: str, sentence: str = "") -> None:
        """Tell the others how the training ended, and wait for those of this machine."""
        if self.others is not None:
            self.others.close(how, sentence)
            _reap(self.pids)


@contextmanager
def team(wanted: Request, recipe: Recipe, registry: Registry) -> Iterator[Team]:
    """The ranks of this command. Only rank 0 gets into the block; others serve it, and exit.

    Raises:
        UserError: an option does not fit this machine, or rank 0 is lost or has failed.
    """
    if wanted.processes == 1:
        yield Team(1, {})
        return
    from paddle_tfm.train.ranks.group import DONE, FAILED, STOPPED

    _require_no_shards(recipe)
    launched = wanted.launched()
    with _share_of_threads(launched.on_this_machine if launched else wanted.nproc or 1):
        ours = _started(wanted, _facts(wanted, recipe), registry)
        how, sentence = FAILED, "rank 0 has ended; its output says why"
        try:
            yield ours
            how, sentence = DONE, ""
        except UserError as error:
            sentence = str(error)
            raise
        except click.exceptions.Exit as end:
            how = STOPPED if end.exit_code == INTERRUPTED else FAILED
            raise
        finally:
            ours.end(how, sentence)


def _require_no_shards(recipe: Recipe) -> None:
    """Raises UserError: a run's settings say into how many shards its batches are divided."""
    from paddle_tfm.recipe.sections.trials import planned
    from paddle_tfm.train.ranks.group import shards_with_ranks

    for run in planned(recipe):
        if run.settings is not None and run.settings.train.shards is not None:
            raise UserError(shards_with_ranks(run.settings.train.shards))


@contextmanager
def _share_of_threads(nproc: int) -> Iterator[None]:
    """Within this block each of `nproc` processes, this one and its forks, has an equal part of the threads."""
    from paddle_tfm import processes, runtime

    try:
        with runtime.threads_for(nproc):
            processes.set_threads(runtime.threads())
            yield
    finally:
        processes.set_threads(runtime.threads())


def _started(wanted: Request, facts: Facts, registry: Registry) -> Team:
    """The ranks of this machine, at work; in rank 0 what it has of them. Raises: as `team`."""
    from paddle_tfm import processes
    from paddle_tfm.train.ranks.meeting import Address
    from paddle_tfm.train.ranks.rank_zero import Ranks

    if not sys.platform.startswith("linux"):
        raise UserError("several processes train together on Linux only, where Paddle's gloo and NCCL are")
    launched, nproc, size = wanted.launched(), wanted.nproc or 1, wanted.processes
    if nproc > 1 and not processes.can_fork():
        raise UserError(
            f"--nproc={nproc} starts processes on a CPU only; on GPUs, give one command a process, with --nodes, "
            "--node and --address, or use python -m paddle.distributed.launch"
        )
    first = launched.rank if launched else (wanted.node or 0) * nproc
    text = wanted.address or (launched.address if launched else "")
    address = Address.of(text) if text else Address.free()
    if first == 0:
        address.require_ours()
    pids = [fork(address, first + local, size, facts, registry) for local in range(1, nproc)]
    if first != 0:
        serve_here(address, first, size, facts, registry)
    return Team(size, facts, Ranks(size, address), pids)


def _facts(wanted: Request, recipe: Recipe) -> Facts:
    """What every rank must have alike."""
    from paddle_tfm.runtime import installed_paddle

    whole = hashlib.sha256(json.dumps(recipe.data, sort_keys=True, default=str).encode()).hexdigest()[:12]
    return {
        "version of paddle_tfm": [metadata.version("paddle-tfm")],
        "Paddle": [" ".join(installed_paddle() or ("none",))],
        "ranks": [f"{wanted.processes}", f"--nodes={wanted.nodes or 1}", f"--nproc={wanted.nproc or 1}"],
        "recipe": [*recipe.arguments, f"contents {whole}"],
    }


def _reap(pids: list[int]) -> None:
    """Wait for the ranks of this machine; one that does not end is killed."""
    from paddle_tfm.train.ranks.group import LEAVE

    end = time.monotonic() + LEAVE
    while pids and time.monotonic() < end:
        pids[:] = [pid for pid in pids if os.waitpid(pid, os.WNOHANG)[0] == 0]
        time.sleep(0.01)
    while pids:
        pid = pids.pop()
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
