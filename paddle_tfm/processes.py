"""Worker processes on this machine: on a CPU, two processes of one thread each do more than one process of two threads.

Paddle's matrix products use every thread, but most of its other kernels, and Python, use one. A worker is a fork of the
process that has the work: it has the same model and data from the start, with nothing to load. It ends when its parent
ends, in whatever way.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn, TypeVar

from paddle_tfm import paddle_compat, place, runtime
from paddle_tfm.errors import UserError
from paddle_tfm.exit_status import how_it_ended
from paddle_tfm.plugin_errors import of_plugin

Item = TypeVar("Item")
Result = TypeVar("Result")
MIN_BATCH_TOKENS = 512  # in smaller batches, Python's time for the calls exceeds that of the arithmetic
PR_SET_PDEATHSIG = 1  # of Linux: the signal that a process gets when its parent has ended
_division: ContextVar[tuple[int, int] | None] = ContextVar("paddle_tfm_division", default=None)  # parts, threads


def can_fork() -> bool:
    """Whether a fork of this process can use Paddle: on Linux, on the CPU."""
    return sys.platform.startswith("linux") and place.on_cpu()


def available_workers() -> int:
    """The number of processes for parallel work: that of the threads, or 1 if this process cannot fork."""
    return runtime.threads() if can_fork() else 1


@contextmanager
def divided(parts: int, threads: int) -> Iterator[None]:
    """Within this block work is divided as for so many processes, whether they are there or not, and this process takes
    `threads` threads for matrix products: so neither decides the last bits of what is computed."""
    token = _division.set((parts, threads))
    set_threads(threads)
    try:
        yield
    finally:
        _division.reset(token)
        set_threads(own_threads())


def own_threads() -> int:
    """The threads of this process for matrix products, while it shares them with no other."""
    division = _division.get()
    return runtime.threads() if division is None else division[1]


def threads_of_each(number: int) -> int:
    """The threads of each of `number` processes that share those of this one."""
    return max(1, own_threads() // number)


def batch_budget(total: int, max_tokens: int) -> int:
    """The tokens in a batch, at most `max_tokens`, when `total` tokens are divided into batches: all processes get
    equally many batches, and together work on at most 2 `max_tokens` at a time. Few large batches need fewer calls than
    many small ones."""
    division = _division.get()
    workers = available_workers() if division is None else division[0]
    upper = min(max_tokens, max(MIN_BATCH_TOKENS, 2 * max_tokens // workers))
    lower = min(max_tokens, MIN_BATCH_TOKENS)
    rounds = max(1, math.ceil(total / (workers * upper)))
    return max(lower, min(upper, math.ceil(1.1 * total / (workers * rounds))))  # 1.1: a tenth for padding


def set_threads(number: int) -> None:
    """Let this process use `number` threads for matrix products."""
    paddle_compat.set_num_threads(number)


@contextmanager
def share_of_threads(number: int) -> Iterator[None]:
    """Within this block each of `number` processes, this one, its forks and those that it starts, has an equal part of
    the threads."""
    try:
        with runtime.threads_for(number):
            set_threads(runtime.threads())
            yield
    finally:
        set_threads(runtime.threads())


@contextmanager
def signals_wait() -> Iterator[None]:
    """Delay the handling of signals that arrive within this block to its end. Needed around a fork, where Python runs
    registered functions (logging has one): it prints and drops their exceptions, and so would lose a Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():  # Python handles signals in the main thread only
        yield
        return
    pending: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers = {number: handler for number, handler in handlers.items() if handler is not None}  # None: not Python's
    for number in handlers:
        signal.signal(number, lambda received, frame: pending.append(received))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for received in pending:
        signal.raise_signal(received)


def end_with_parent(parent: int) -> None:
    """In a fork: have the system kill this process as soon as the process `parent`, which forked it in its main thread,
    has ended, in whatever way."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:  # it has ended already
        os._exit(1)


class Worker:
    """A fork of this process that applies `function` to one task after another, on `threads` threads.

    Tasks and results are pickled. `result` raises what `function` raised.
    """

    def __init__(self, function: Callable[[Any], Any], threads: int = 1):
        self.pipe, worker_end = Pipe()
        self.ended: int | None = None  # its exit status, once it is known
        with signals_wait():
            self.pid = os.fork()
            if self.pid == 0:
                _serve(worker_end, self.pipe, function, threads)
        worker_end.close()

    def submit(self, task: object) -> None:
        """Send a task; `result` waits for its result."""
        with suppress(BrokenPipeError):  # the worker died: `result` raises
            self.pipe.send(task)

    def result(self) -> Any:
        """The result of the oldest task.

        Raises:
            UserError: `function` raised a UserError, or the worker died. MemoryError: it raised one. RuntimeError: it
                raised another exception; its traceback is the message.
        """
        try:
            value, error = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            how = how_it_ended(self._status(), "use one process: set OMP_NUM_THREADS=1")
            raise UserError(f"a worker process {how}") from None
        if error is not None:
            raise error
        return value

    def close(self) -> None:
        """Kill the worker."""
        self.pipe.close()
        if self.ended is None:
            os.kill(self.pid, signal.SIGKILL)
            self._status()

    def _status(self) -> int:
        """How the process ended, or will end soon."""
        if self.ended is None:
            self.ended = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.ended


def _serve(pipe: Connection, parents_end: Connection, function: Callable[[Any], Any], threads: int) -> NoReturn:
    """The main loop of a worker. It ends by `os._exit`, so that it does not run the clean-up code of its parent."""
    gc.freeze()  # what is garbage of the parent stays so: Paddle's store waits for a thread that this process lacks
    try:
        for number in (signal.SIGINT, signal.SIGTERM):  # a terminal sends them to all processes; the parent decides
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
            except MemoryError as error:
                pipe.send((None, MemoryError(str(error))))
            except Exception as error:
                pipe.send((None, of_plugin(error) or RuntimeError(f"in a worker process:\n{traceback.format_exc()}")))
    finally:  # the parent ended
        os._exit(0)


def imap_unordered(function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
    """(i, function(items[i])) for all items, in order of completion, computed by several workers if they are available.
    Put the items that take longest first."""
    num_workers = min(available_workers(), len(items))
    if num_workers < 2:
        for i, item in enumerate(items):
            yield i, function(item)
        return
    with ExitStack() as stack:
        busy: dict[Any, tuple[Worker, int]] = {}
        indices = iter(range(len(items)))
        for _ in range(num_workers):
            worker, i = Worker(lambda i: function(items[i])), next(indices)
            stack.callback(worker.close)
            worker.submit(i)
            busy[worker.pipe] = worker, i
        while busy:
            for pipe in wait(list(busy)):
                worker, i = busy.pop(pipe)
                value = worker.result()
                next_index = next(indices, None)
                if next_index is not None:
                    worker.submit(next_index)
                    busy[pipe] = worker, next_index
                yield i, value
