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
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from typing import TYPE_CHECKING, NoReturn

import click

from paddle_tfm.cli import complain
from paddle_tfm.cli.common import note
from paddle_tfm.errors import UserError
from paddle_tfm.exit_status import how_it_ended

if TYPE_CHECKING:
    from paddle_tfm.cli.run.request import Request
    from paddle_tfm.recipe.expansion import Recipe
    from paddle_tfm.registry import Registry
    from paddle_tfm.train.group import Member, Ranks
    from paddle_tfm.train.meeting import Address, Facts

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
            "share of the threads; at most 8 for each core. The same result, but for rounding. Processes that Paddle's "
            "launcher, Slurm or mpirun started need no such option.",
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
    from paddle_tfm.train.group import DONE, FAILED, STOPPED

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
    from paddle_tfm.train.group import shards_with_ranks

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
    from paddle_tfm.train.group import Ranks
    from paddle_tfm.train.meeting import Address

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
    pids = [_fork(address, first + local, size, facts, registry) for local in range(1, nproc)]
    if first != 0:
        _serve_here(address, first, size, facts, registry)
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


def _joined(address: Address, rank: int, size: int, facts: Facts, say: Callable[[str, str], None]) -> Member:
    """What a rank has of the others. As soon as rank 0 says how the training ended, that is given to `say`, and this
    process ends.

    Raises:
        UserError: nobody answers at the address.
    """
    from paddle_tfm.train.group import DONE, STOPPED, Member

    def ended(how: str, sentence: str) -> NoReturn:
        say(how, sentence)
        sys.stderr.flush()
        os._exit({DONE: 0, STOPPED: INTERRUPTED}.get(how, 2))

    return Member(rank, size, address, facts, ended)


def _serve_here(address: Address, rank: int, size: int, facts: Facts, registry: Registry) -> NoReturn:
    """Serve rank 0 in the process that the user started, which asks it to stop where the user wants to, and ends as the
    training does.

    Raises:
        UserError: nobody answers at the address.
    """
    from paddle_tfm.train.group import DONE, FAILED, STOPPED, ask_to_stop
    from paddle_tfm.train.rank import Rank

    may_ask = False

    def signalled(number: int) -> None:
        nonlocal may_ask
        if not may_ask:
            os._exit(128 + number)
        may_ask = False
        note("Asking rank 0 to stop after this step, with a checkpoint … (again: this process ends at once)")
        ask_to_stop(address)

    def say(how: str, sentence: str) -> None:
        if how == DONE:
            note(f"The training has ended; its runs are on the machine of {address}.")
        elif how == STOPPED:
            note(f"The training was stopped, with a checkpoint on the machine of {address}; --resume continues it.")
        else:
            complain(sentence)

    note(f"Rank {rank} of {size}: serving rank 0 at {address}")
    _on_signals(signalled)
    member = _joined(address, rank, size, facts, say)
    may_ask = True
    try:
        Rank(member, registry).serve()
    except UserError as error:
        member.ended(FAILED, str(error))
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)  # Python ends badly, while a thread is in the store's code


def _on_signals(act: Callable[[int], None]) -> None:
    """From now on a thread calls `act` with the number of each SIGINT and SIGTERM, whatever the main thread waits
    for."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *signalled: None)

    def listen() -> None:
        while True:
            act(os.read(reader, 1)[0])

    threading.Thread(target=listen, daemon=True).start()


def _fork(address: Address, rank: int, size: int, facts: Facts, registry: Registry) -> int:
    """The process of another rank. It says nothing of what the process that was started says."""
    from paddle_tfm import processes, runtime

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
            processes.set_threads(runtime.threads())
            from paddle_tfm.train.rank import Rank

            Rank(_joined(address, rank, size, facts, lambda how, sentence: None), registry).serve()
        except UserError:
            status = 2
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)


def _reap(pids: list[int]) -> None:
    """Wait for the ranks of this machine; one that does not end is killed."""
    end = time.monotonic() + LEAVE
    while pids and time.monotonic() < end:
        pids[:] = [pid for pid in pids if os.waitpid(pid, os.WNOHANG)[0] == 0]
        time.sleep(0.01)
    while pids:
        pid = pids.pop()
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
