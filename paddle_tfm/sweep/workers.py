"""Runs side by side in processes of this machine, each with its share of the cores.

Small models gain little from a second thread, and everything from a second process. What a run draws does not depend on
who trains it (counter-based random numbers); its sums may differ in the last bit, as they do between numbers of threads.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paddle_tfm import runtime
from paddle_tfm.errors import UserError
from paddle_tfm.recipe.loading import Recipe, RunSpec
from paddle_tfm.runtime import load_paddle

POLL = 0.1  # seconds between looks at the workers


@dataclass(frozen=True)
class Job:
    """What a worker needs to know: everything but the run."""

    recipe: Recipe
    folder: Path
    resume: bool
    strict: bool
    plugin_files: Sequence[Path]
    device: str
    parent: int


def train_side_by_side(sweep, runs: Sequence[RunSpec], workers: int) -> None:
    """Train `runs` in `workers` processes, relaying what they tell to `sweep.tell` and `sweep.report`.

    Raises:
        UserError: what a worker complained of; the others have stopped, and `resume` goes on.
        Interrupted: `sweep.stop` said so, and every worker saved a checkpoint.
    """
    from paddle_tfm import processes
    from paddle_tfm.train.trainer import Interrupted

    # A fork has Paddle loaded: the first step comes two seconds sooner.
    context = multiprocessing.get_context("fork" if processes.can_fork() else "spawn")
    todo, told, halt = context.Queue(), context.Queue(), context.Event()
    for spec in runs:
        todo.put(spec)
    for _ in range(workers):
        todo.put(None)
    job = Job(
        sweep.recipe, sweep.folder, sweep.resume, sweep.strict, tuple(sweep.plugin_files), sweep.device, os.getpid()
    )
    with runtime.threads_for(workers):
        pool = [context.Process(target=_work, args=(job, todo, told, halt), daemon=True) for _ in range(workers)]
        for process in pool:
            with processes.signals_wait():
                process.start()
    interrupted, failures, done = [], [], 0
    try:
        while done < workers:
            if sweep.stop() or failures:
                halt.set()
            try:
                kind, what = told.get(timeout=POLL)
            except queue.Empty:
                if any(process.exitcode not in (None, 0) for process in pool) and not failures:
                    failures.append(UserError(_death(pool)))
                if all(process.exitcode is not None for process in pool):
                    break
                continue
            if kind == "event":
                sweep.tell(what)
            elif kind == "report":
                sweep.report(what)
            elif kind == "interrupted":
                interrupted.append(what)
            elif kind == "failed":
                failures.append(what)
            done += kind == "done"
    finally:
        halt.set()
        for process in pool:
            process.join(timeout=60)
    if failures:
        raise failures[0]
    if interrupted:
        raise Interrupted(", ".join(sorted(interrupted)))


def _death(pool) -> str:
    code = next(process.exitcode for process in pool if process.exitcode)
    cause = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
    return (
        f"a worker process died ({cause}); if memory ran out, use --workers 1. What was saved is kept: add --resume to "
        "go on"
    )


def _work(job: Job, todo, told, halt) -> None:
    """The life of a worker: runs, until there are none."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the parent decides
    try:
        load_paddle().set_device(job.device)
        from paddle_tfm import processes
        from paddle_tfm.plugins import create_plugins
        from paddle_tfm.registry import Registry
        from paddle_tfm.sweep.sweep import Sweep
        from paddle_tfm.train.trainer import Interrupted

        processes.set_threads(runtime.threads())
        sweep = Sweep(
            job.recipe,
            Registry(create_plugins(job.plugin_files)),
            job.folder,
            job.resume,
            stop=lambda: halt.is_set() or os.getppid() != job.parent,  # an orphan saves and ends
            report=lambda text: told.put(("report", text)),
            tell=lambda event: told.put(("event", event)),
            strict=job.strict,
        )
        try:
            sweep.train_here(iter(todo.get, None))
        except Interrupted as interrupted:
            told.put(("interrupted", str(interrupted)))
        except UserError as error:
            told.put(("failed", UserError(str(error))))
        except OSError as error:
            told.put(("failed", UserError(f"{error.filename or job.folder}: {error.strerror}")))
    except Exception:
        told.put(("failed", RuntimeError(f"in a worker process:\n{traceback.format_exc()}")))
    told.put(("done", None))
