"""`run --nproc` and `run --nodes`: several processes, the ranks, that train each run of a recipe together.

Rank 0 is the process that the user started with `--node 0`, or without `--nodes`. It does all that one process does;
the others only compute gradients. Each machine's further ranks are forks of the process that was started there.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib import metadata
from typing import TYPE_CHECKING, NoReturn

import click

from paddle_tfm.cli.common import Stop, note
from paddle_tfm.cli.run.request import Request
from paddle_tfm.errors import UserError
from paddle_tfm.exit_status import how_it_ended

if TYPE_CHECKING:
    from paddle_tfm.recipe.expansion import Recipe
    from paddle_tfm.registry import Registry
    from paddle_tfm.train.meeting import Address
    from paddle_tfm.train.members import Ended, Ranks

Facts = dict[str, list[str]]
LEAVE = 10.0  # seconds in which the ranks of this machine end by themselves, once rank 0 has said that they may
INTERRUPTED = 130


def rank_options(function: Callable) -> Callable:
    """The options that say which processes train each run."""
    options = (
        click.option(
            "--nproc",
            type=click.IntRange(min=1),
            default=None,
            help="Processes on this machine that train each run together, each with some rows of every batch and its "
            "share of the threads; at most 8 for each core. The same result, but for rounding.",
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
            help="Where machine 0 listens, the same on every machine. Whoever reaches it can change numbers: keep it "
            "within a private network.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


class Team:
    """The ranks of a command, in rank 0. `meet` waits for the others."""

    def __init__(self, size: int, facts: Facts, listener: socket.socket | None = None):
        self.size, self.facts, self.listener = size, facts, listener
        self.others: Ranks | None = None
        self.pids: list[int] = []

    def meet(self) -> Ranks | None:
        """What rank 0 has of the others; None where there are none. Raises UserError: one is not as it should be."""
        from paddle_tfm.train.meeting import meet

        if self.listener is not None:
            self.others = meet(self.listener, self.facts, self.size, note, self._require_alive)
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
        if self.listener is not None:
            self.listener.close()
        if self.others is not None:
            self.others.close(how, sentence)
        _reap(self.pids, LEAVE if self.others is not None else 0.0)


@contextmanager
def team(wanted: Request, recipe: Recipe, registry: Registry) -> Iterator[Team]:
    """The ranks of this command. Only rank 0 gets into the block; others serve it, and exit.

    Raises:
        UserError: an option does not fit this machine, or rank 0 is lost or has failed.
    """
    if wanted.processes > 1:
        _require_no_shards(recipe)
    with _share_of_threads(wanted.nproc or 1) if wanted.processes > 1 else nullcontext():
        yield from _team(wanted, recipe, registry)


def _team(wanted: Request, recipe: Recipe, registry: Registry) -> Iterator[Team]:
    """As `team`, with the threads of this process as they are."""
    from paddle_tfm.train.members import DONE, FAILED, STOPPED

    ours = _started(wanted, _facts(wanted, recipe), registry) if wanted.processes > 1 else Team(1, {})
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
    from paddle_tfm.train.members import shards_with_ranks

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
    from paddle_tfm import processes, runtime
    from paddle_tfm.train.meeting import Address, listen
    from paddle_tfm.train.members import FAILED

    nproc, size, node = wanted.nproc or 1, wanted.processes, wanted.node or 0
    if nproc > 1 and not processes.can_fork():
        raise UserError(
            f"--nproc={nproc} starts processes on Linux and a CPU only; elsewhere, give one command a process, with "
            "--nodes, --node and --address"
        )
    address = Address.of(wanted.address) if wanted.address else Address("127.0.0.1", 0)
    ours = Team(size, facts, listen(address) if node == 0 else None)
    if ours.listener is not None:
        address = Address(address.host, ours.listener.getsockname()[1])

    def serve(rank: int) -> None:
        end = _serve(address, rank, size, facts, registry)
        if end.how == FAILED:
            raise UserError(str(end))

    ours.pids = [_fork(serve, node * nproc + local, runtime.threads(), ours.listener) for local in range(1, nproc)]
    if ours.listener is None:
        try:
            _serve_here(address, node * nproc, size, facts, registry)
        except KeyboardInterrupt:  # at once; they may not have met
            _reap(ours.pids, 0.0)
            raise
        finally:
            _reap(ours.pids, LEAVE)
    return ours


def _facts(wanted: Request, recipe: Recipe) -> Facts:
    """What every rank must have alike."""
    from paddle_tfm.runtime import installed_paddle

    whole = hashlib.sha256(json.dumps(recipe.data, sort_keys=True, default=str).encode()).hexdigest()[:12]
    return {
        "version of paddle_tfm": [metadata.version("paddle-tfm")],
        "Paddle": [" ".join(installed_paddle() or ("none",))],
        "ranks": [f"--nodes={wanted.nodes or 1}", f"--nproc={wanted.nproc or 1}"],
        "recipe": [*recipe.arguments, f"contents {whole}"],
    }


def _serve(
    address: Address,
    rank: int,
    size: int,
    facts: Facts,
    registry: Registry,
    stop: Callable[[], AbstractContextManager[Callable[[], bool]]] = lambda: nullcontext(lambda: False),
) -> Ended:
    """Serve rank 0; returns how the training ended. Until the ranks have met, a signal ends it at once; then `stop`
    says what it asks for."""
    from paddle_tfm.train.meeting import join
    from paddle_tfm.train.members import Ended
    from paddle_tfm.train.rank import Rank

    try:
        member = join(address, rank, size, facts)
    except Ended as end:
        return end
    with stop() as asked:
        return Rank(member, registry, asked).serve()


def _serve_here(address: Address, rank: int, size: int, facts: Facts, registry: Registry) -> NoReturn:
    """Serve rank 0 in the process that the user started, and exit as the training ended.

    Raises:
        UserError: it failed.
    """
    from paddle_tfm.train.members import DONE, STOPPED

    note(f"Rank {rank} of {size}: serving rank 0 at {address}")
    end = _serve(address, rank, size, facts, registry, Stop)
    if end.how == DONE:
        note(f"The training has ended; its runs are on the machine of {address}.")
        raise click.exceptions.Exit(0)
    if end.how == STOPPED:
        note(f"The training was stopped, with a checkpoint on the machine of {address}; --resume continues it.")
        raise click.exceptions.Exit(INTERRUPTED)
    raise UserError(str(end))


def _fork(serve: Callable[[int], None], rank: int, threads: int, listener: socket.socket | None) -> int:
    """The process of another rank. It says nothing of what the process that was started says."""
    from paddle_tfm import processes

    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    with processes.signals_wait():
        if pid := os.fork():
            return pid
        status = 1
        try:
            processes.end_with_parent(parent)  # in whatever it waits for: rank 0 alone says what became of the run
            for number in (signal.SIGINT, signal.SIGTERM):  # a terminal sends them to all processes; rank 0 decides
                signal.signal(number, signal.SIG_IGN)
            if listener is not None:
                listener.close()
            os.environ["OMP_NUM_THREADS"] = str(threads)
            processes.set_threads(threads)
            serve(rank)
            status = 0
        except UserError:
            status = 2
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)


def _reap(pids: list[int], seconds: float) -> None:
    """Wait so long for the ranks of this machine; one that does not end is killed. Who has not met rank 0 learns
    nothing from it, and need not be waited for."""
    end = time.monotonic() + seconds
    while pids and time.monotonic() < end:
        pids[:] = [pid for pid in pids if os.waitpid(pid, os.WNOHANG)[0] == 0]
        time.sleep(0.01)
    while pids:
        pid = pids.pop()
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
