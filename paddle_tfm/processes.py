"""Work shared among processes of this machine: on a CPU, two of one thread each do more than one of two.

Paddle's matrix products take every thread there is, most of its other kernels one, and Python one. A worker is a fork
of the process that has the work: it holds the same model and data from the beginning, with nothing to load. It ends
when its parent does, however that ends.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn, TypeVar

import paddle

from paddle_tfm import paddle_compat, runtime
from paddle_tfm.errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")
MIN_BATCH_TOKENS = 512  # of a batch: with fewer, Python's time for each call counts more than the arithmetic


def can_fork() -> bool:
    """Whether a fork of this process can use Paddle: on Linux, with a CPU."""
    return sys.platform.startswith("linux") and paddle.device.get_device() == "cpu"


def available_workers() -> int:
    """How many processes may share work here: as many as there are threads, where processes can fork."""
    return runtime.threads() if can_fork() else 1


def batch_budget(total: int, most: int) -> int:
    """The token budget of a batch out of `total` tokens, at most `most`: such that all processes have as many batches,
    and no more than twice `most` are worked on at once. Small batches cost more calls than large ones."""
    workers = available_workers()
    most, least = min(most, max(MIN_BATCH_TOKENS, 2 * most // workers)), min(most, MIN_BATCH_TOKENS)
    rounds = max(1, math.ceil(total / (workers * most)))
    return max(least, min(most, math.ceil(1.1 * total / (workers * rounds))))  # a tenth for padding


def set_threads(number: int) -> None:
    """From now on this process takes `number` threads for its matrix products."""
    paddle_compat.set_num_threads(number)


@contextmanager
def signals_wait() -> Iterator[None]:
    """Signals that arrive within this block are handled at its end. Around a fork: Python runs functions there
    (logging's, for one) whose exceptions are printed and forgotten, and so would a Ctrl-C be at that moment."""
    if threading.current_thread() is not threading.main_thread():  # no signal is handled here
        yield
        return
    pending: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in before.items() if handler is not None}  # None: not Python's
    for handled in before:
        signal.signal(handled, lambda number, frame: pending.append(number))
    try:
        yield
    finally:
        for handled, handler in before.items():
            signal.signal(handled, handler)
    for number in pending:
        signal.raise_signal(number)


class Worker:
    """A fork that does one task after another by `function`, on `threads` threads.

    Tasks and results are pickled. What `function` raises is raised by `result`; a `UserError` as it is.
    """

    def __init__(self, function: Callable[[Any], Any], threads: int = 1):
        self.pipe, end = Pipe()
        with signals_wait():
            self.pid = os.fork()
            if self.pid == 0:
                _serve(end, self.pipe, function, threads)
        end.close()

    def submit(self, task: object) -> None:
        """Send a task; `result` waits for it to be done."""
        with suppress(BrokenPipeError):  # it died: `result` says so
            self.pipe.send(task)

    def result(self) -> Any:
        """The result of the oldest task.

        Raises:
            UserError: the worker refused, or died. RuntimeError: anything else that it raised, with its traceback.
        """
        try:
            value, error = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            raise UserError(
                "a process that had a shard of the work died; if memory ran out, use one process: set OMP_NUM_THREADS=1"
            ) from None
        if error is not None:
            raise error
        return value

    def close(self) -> None:
        """End the worker, whatever it is doing."""
        self.pipe.close()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _serve(pipe: Connection, parents_end: Connection, function: Callable[[Any], Any], threads: int) -> NoReturn:
    """The life of a worker. It leaves by `os._exit`: what its parent had to clean up is its parent's."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM):  # both may reach the whole group: the parent decides
            signal.signal(number, signal.SIG_IGN)
        parents_end.close()
        os.environ["OMP_NUM_THREADS"] = str(threads)
        set_threads(threads)
        while True:
            task = pipe.recv()
            try:
                pipe.send((function(task), None))
            except UserError as error:
                pipe.send((None, UserError(str(error))))
            except Exception:
                pipe.send((None, RuntimeError(f"in a process that has a shard of the work:\n{traceback.format_exc()}")))
    finally:  # the parent is gone
        os._exit(0)


def imap_unordered(function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
    """(i, function(items[i])) for all items, in the order in which they get done; several at a time where processes are
    available. Begin with those that take longest."""
    num_workers = min(available_workers(), len(items))
    if num_workers < 2:
        for i, item in enumerate(items):
            yield i, function(item)
        return
    with ExitStack() as stack:
        busy: dict[Any, tuple[Worker, int]] = {}
        waiting = iter(range(len(items)))
        for _ in range(num_workers):
            worker, i = Worker(lambda i: function(items[i])), next(waiting)
            stack.callback(worker.close)
            worker.submit(i)
            busy[worker.pipe] = worker, i
        while busy:
            for pipe in wait(list(busy)):
                worker, i = busy.pop(pipe)
                value = worker.result()
                following = next(waiting, None)
                if following is not None:
                    worker.submit(following)
                    busy[pipe] = worker, following
                yield i, value
