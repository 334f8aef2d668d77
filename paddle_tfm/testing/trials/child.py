"""A function in a fork of this process, which a crash or an endless wait may end; memory beyond which reading is a
crash."""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import re
import tempfile
from collections.abc import Callable

import numpy as np

from paddle_tfm import processes
from paddle_tfm.errors import UserError
from paddle_tfm.testing.backward_line import is_of_the_author
from paddle_tfm.testing.report import line_of
from paddle_tfm.testing.results import ComponentError, Failed, Result

SECONDS = 120.0  # in which a function must end
Doing = Callable[[object], None]  # told what the function is doing, so that it is known if it never ends

_OF_PADDLE = re.compile(r"^.*?Error message in backward of .*?=+ ")  # before what a backward of one's own raised


def in_child(function: Callable[[Doing], Result], seconds: float = SECONDS) -> Result:
    """What `function` returns, computed in a fork of this process on one thread; Failed where that ends or waits for
    ever, or an exception is raised."""
    said = mmap.mmap(-1, 4096)  # shared with the child

    def doing(what: object) -> None:
        said[:] = str(what).encode()[: len(said)].ljust(len(said), b"\0")

    with tempfile.TemporaryFile() as trace:

        def serve(_: object) -> Result:
            faulthandler.enable(trace)
            try:
                return function(doing)
            except ComponentError as error:
                return Failed(str(error))
            except Exception as error:  # of somebody's code
                text = _OF_PADDLE.sub("", " ".join(str(error).split()))[:200]
                return Failed(f"{type(error).__name__}: {text}{line_of(error)}{_on(said)}", raised=True)

        worker = processes.Worker(serve)
        try:
            worker.submit(None)
            if not worker.pipe.poll(seconds):
                return Failed(f"it has not ended after {seconds:g} seconds{_on(said)}")
            return worker.result()
        except UserError as error:
            how = str(error).partition("; ")[0].removeprefix("a worker process ")
            return Failed(f"the process {how}{_crashed_at(trace)}{_on(said)}")
        finally:
            worker.close()


def _on(said: mmap.mmap) -> str:
    what = said[:].rstrip(b"\0").decode(errors="ignore")
    return f": {what}" if what else ""


def _crashed_at(trace) -> str:
    """The innermost line of somebody's code in what faulthandler wrote."""
    trace.seek(0)
    for file, line in re.findall(r'File "(.+?)", line (\d+)', trace.read().decode(errors="ignore")):
        if is_of_the_author(file):
            return f" in {file.rsplit('/', 1)[-1]} line {line}"
    return ""


class Guarded:
    """Arrays that end at a page which may not be touched, or begin behind one: who reads beyond ends its process."""

    def __init__(self, at_end: bool):
        self.at_end = at_end
        self.libc = ctypes.CDLL(None, use_errno=True)

    def __call__(self, array: np.ndarray) -> np.ndarray:
        """A copy of an array, in such memory, which is given back with it."""
        page = mmap.PAGESIZE
        inner = max(page, -(-array.nbytes // page) * page)
        memory = mmap.mmap(-1, inner + 2 * page)
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for guard in (start, start + page + inner):
            if self.libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(page), 0):
                raise OSError(ctypes.get_errno(), "mprotect")
        where = page + (inner - array.nbytes if self.at_end else 0)
        placed = np.frombuffer(memory, array.dtype, array.size, where).reshape(array.shape)
        placed[...] = array
        return placed
