"""Work shared among processes of this machine: on a CPU, two of one thread each do more than one of two.

Paddle's matrix products take every thread there is, most of its other kernels one, and Python one. A helper is a fork of
the process that has the work: it holds the same model and data from its first moment, with nothing to load. It ends when
its parent does, however that ends.
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
from multiprocessing.connection import wait

import paddle

from paddle_tfm import runtime
from paddle_tfm.errors import UserError

LEAST = 512  # tokens of a batch: with fewer, Python's time for each call counts more than the arithmetic


def can_fork() -> bool:
    """Whether a fork of this process can use Paddle: on Linux, with a CPU."""
    return sys.platform.startswith("linux") and paddle.device.get_device() == "cpu"


def available_workers() -> int:
    """How many processes may share work here: as many as there are threads, where processes can fork."""
    return runtime.threads() if can_fork() else 1


def batch_budget(total: int, most: int) -> int:
    """Tokens of a batch out of `total`, at most `most`: such that all processes have as many batches, and at once no more
    than twice `most` are worked on. Small batches cost more calls than large ones."""
    number = available_workers()
    most, least = min(most, max(LEAST, 2 * most // number)), min(most, LEAST)
    rounds = max(1, math.ceil(total / (number * most)))
    return max(least, min(most, math.ceil(1.1 * total / (number * rounds))))  # a tenth for padding


def set_threads(number: int) -> None:
    """From now on this process takes so many threads for its matrix products."""
    paddle.base.core.set_num_threads(number)


@contextmanager
def signals_wait() -> Iterator[None]:
    """Signals that come meanwhile are answered at the end. Around a fork: Python runs functions there (logging's, for
    one) of which an exception is printed and forgotten, and a Ctrl-C at that moment would be, too."""
    if threading.current_thread() is not threading.main_thread():  # no signal is answered here
        yield
        return
    came = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in before.items() if handler is not None}  # None: not Python's
    for number in before:
        signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for number in came:
        signal.raise_signal(number)


class Helper:
    """A fork that answers questions with `answer`, one after another, on `threads` threads.

    Questions and answers are pickled. What `answer` raises is raised by `hear`; a `UserError` as it is.
    """

    def __init__(self, answer: Callable[[object], object], threads: int = 1):
        self.pipe, there = Pipe()
        with signals_wait():
            self.pid = os.fork()
            if self.pid == 0:
                _serve(there, self.pipe, answer, threads)
        there.close()

    def ask(self, question: object) -> None:
        """Send a question; `hear` waits for its answer."""
        with suppress(BrokenPipeError):  # it died: `hear` says so
            self.pipe.send(question)

    def hear(self) -> object:
        """The answer to the oldest question.

        Raises:
            UserError: the helper refused, or died. RuntimeError: anything else that it raised, with its traceback.
        """
        try:
            value, error = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            raise UserError(
                "a process that had a share of the work died; if memory ran out, share none: set OMP_NUM_THREADS=1"
            ) from None
        if error is not None:
            raise error
        return value

    def close(self) -> None:
        """End the helper, whatever it is doing."""
        self.pipe.close()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _serve(pipe, others, answer: Callable[[object], object], threads: int) -> None:
    """The life of a helper. It leaves by `os._exit`: what its parent had to clean up is its parent's."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM):  # both may reach the whole group: the parent decides
            signal.signal(number, signal.SIG_IGN)
        others.close()
        os.environ["OMP_NUM_THREADS"] = str(threads)
        set_threads(threads)
        while True:
            question = pipe.recv()
            try:
                pipe.send((answer(question), None))
            except UserError as error:
                pipe.send((None, UserError(str(error))))
            except Exception:
                pipe.send((None, RuntimeError(f"in a process that has a share of the work:\n{traceback.format_exc()}")))
    finally:  # the parent is gone
        os._exit(0)


def imap_unordered(function: Callable[[object], object], items: Sequence[object]) -> Iterator[tuple[int, object]]:
    """(i, function(items[i])) for all items, in the order in which they get done; several at a time where there are
    processes to spare. Begin with those that take longest."""
    processes = min(available_workers(), len(items))
    if processes < 2:
        for i, item in enumerate(items):
            yield i, function(item)
        return
    with ExitStack() as stack:
        busy = {}
        waiting = iter(range(len(items)))
        for i in range(processes):
            helper = Helper(lambda place: function(items[place]))
            stack.callback(helper.close)
            helper.ask(next(waiting))
            busy[helper.pipe] = helper, i
        while busy:
            for pipe in wait(list(busy)):
                helper, i = busy.pop(pipe)
                value = helper.hear()
                following = next(waiting, None)
                if following is not None:
                    helper.ask(following)
                    busy[pipe] = helper, following
                yield i, value
