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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import TYPE_CHECKING

import click

from paddle_tfm.cli.common import note
from paddle_tfm.cli.run.further_ranks import INTERRUPTED, fork, serve_here
from paddle_tfm.errors import UserError
from paddle_tfm.language import _

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
            "with its share of the threads. The result is the same, but for "
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


@contextmanager
def team(wanted: Request, recipe: Recipe, registry: Registry) -> Iterator[Callable[[], Ranks | None]]:
    """The ranks of this command: a function that waits for the others, and returns what rank 0 has of them; None where
    there are none. Only rank 0 gets into the block; others serve it, and exit.

    Raises:
        UserError: an option does not fit this machine, or rank 0 is lost or has failed.
    """
    if wanted.processes == 1:
        yield lambda: None
        return
    from paddle_tfm import processes
    from paddle_tfm.train.ranks.group import DONE, FAILED, STOPPED

    _require_no_shards(recipe)
    launched = wanted.launched()
    with processes.share_of_threads(launched.on_this_machine if launched else wanted.nproc or 1):
        facts = _facts(wanted, recipe)
        others, pids = _started(wanted, facts, registry)
        how, sentence = FAILED, "rank 0 has ended; its output says why"
        try:
            yield lambda: others.meet(facts, note)
            how, sentence = DONE, ""
        except UserError as error:
            sentence = str(error)
            raise
        except click.exceptions.Exit as end:
            how = STOPPED if end.exit_code == INTERRUPTED else FAILED
            raise
        finally:
            others.close(how, sentence)
            for pid in pids:  # one that has not ended stands still
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _require_no_shards(recipe: Recipe) -> None:
    """Raises UserError: a run's settings say into how many shards its batches are divided."""
    from paddle_tfm.recipe.sections.trials import planned

    for run in planned(recipe):
        if run.settings is not None and run.settings.train.shards is not None:
            raise UserError(
                _(
                    "train.shards={shards} promises the same bits on any number of cores, and several processes "
                    "(--nproc, --nodes, a launcher) divide batches by their number: use one of the two"
                ).format(shards=run.settings.train.shards)
            )


def _started(wanted: Request, facts: Facts, registry: Registry) -> tuple[Ranks, list[int]]:
    """In rank 0: what it has of the others, and the processes of this machine. Raises: as `team`."""
    from paddle_tfm import processes
    from paddle_tfm.train.ranks.meeting import Address
    from paddle_tfm.train.ranks.rank_zero import Ranks

    if not sys.platform.startswith("linux"):
        raise UserError(_("several processes train together on Linux only, where Paddle's gloo and NCCL are"))
    launched, nproc, size = wanted.launched(), wanted.nproc or 1, wanted.processes
    if nproc > 1 and not processes.can_fork():
        raise UserError(
            _(
                "--nproc={nproc} starts processes on a CPU only; on GPUs, give one command a process, with --nodes, "
                "--node and --address, or use python -m paddle.distributed.launch"
            ).format(nproc=nproc)
        )
    first = launched.rank if launched else (wanted.node or 0) * nproc
    text = wanted.address or (launched.address if launched else "")
    address = Address.of(text) if text else Address.free()
    if first == 0:
        address.require_ours()
    pids = [fork(address, first + local, size, facts, registry) for local in range(1, nproc)]
    if first != 0:
        serve_here(address, first, size, facts, registry)
    return Ranks(size, address), pids


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
