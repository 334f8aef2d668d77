"""Ranks as forks of the process of a test. A process is in one group of Paddle's engine as long as it lives, so rank 0 is
a fork too."""

import os
import signal
import tempfile
from contextlib import contextmanager
from pathlib import Path

from small_runs import TINY

from paddle_tfm import load_recipe, processes
from paddle_tfm.data.corpus import load_corpus
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm.train.ranks.group import DONE
from paddle_tfm.train.ranks.meeting import Address
from paddle_tfm.train.ranks.member import Member
from paddle_tfm.train.ranks.rank import Rank
from paddle_tfm.train.ranks.rank_zero import Ranks
from paddle_tfm.train.run import create
from paddle_tfm.train.trainer import Trainer

FACTS = {"version": ["this"]}


def serving(member, registry):
    Rank(member, registry).serve()


def forked(function):
    """The process that calls `function`; its exit status is 0, or 2 where that raises."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        processes.end_with_parent(parent)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        function()
        os._exit(0)
    except BaseException as error:
        os.write(1, f"[{type(error).__name__}] {error}\n".encode())  # at once: another rank may write too
        os._exit(2)


def ended(how, sentence):
    os.write(1, f"[{how}] {sentence}\n".encode())
    os._exit(0 if how == DONE else 2)


def start(registry, size, serve=serving):
    """In rank 0: what it has of the others, of which each calls `serve` with what it has."""
    address = Address.free()
    pids = [
        forked(lambda rank=rank: serve(Member(rank, size, address, FACTS, ended), registry)) for rank in range(1, size)
    ]
    others = Ranks(size, address)
    others.meet(FACTS)
    others.pids = pids
    return others


@contextmanager
def team(registry, size, serve=serving):
    """A function that has rank 0 of `size` ranks call another, `function(others, registry, *arguments)`, and returns
    what that returns."""
    met = []

    def do(task):
        if not met:
            met.append(start(registry, size, serve))
        function, arguments = task
        return function(met[0], registry, *arguments)

    worker = processes.Worker(do)

    def call(function, *arguments):
        worker.submit((function, arguments))
        return worker.result()

    try:
        yield call
    finally:
        worker.close()


def trainer_of(registry, *overrides, folder=None, **options):
    """The trainer of a small run, in a folder of its own if none is named."""
    plan = plan_run(load_recipe("base", [*TINY, *overrides]).runs()[0], registry).require_sound("base")
    place = Path(folder or tempfile.mkdtemp()) / "run"
    run = create(plan, place, load_corpus(plan), resume=(place / "identity.json").exists())
    return Trainer(run, registry.plugins, **options)
