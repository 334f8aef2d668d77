"""The standard streams, made such that nothing that is written to them ends in a traceback, whatever their state, their
encoding and the size that the environment says they have."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from paddle_tfm.files import naming
from paddle_tfm.units import whole_number

OUTPUT = "standard output"
MAX_CELLS = 1_000_000  # of a line, or lines of a screen


class Named:
    """A stream whose errors, such as that of a full disk, name it."""

    def __init__(self, stream: IO[str], name: str):
        self.stream, self.name = stream, Path(name)

    def write(self, text: str) -> int:
        with naming(self.name):
            return self.stream.write(text)

    def flush(self) -> None:
        with naming(self.name):
            self.stream.flush()

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class BestEffort(Named):
    """A stream that takes what it can: what it does not take, of a message say, changes nothing that is done."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


@contextmanager
def usable() -> Iterator[None]:
    """Within this block each standard stream is there, closed or not (`>&-`), and takes text that its encoding does not
    have; the errors of standard output name it, and standard error has none. A size that is none, which rich would stop
    at, is forgotten."""
    for name in ("COLUMNS", "LINES"):
        if whole_number(os.environ.get(name, "1").strip(), 1, MAX_CELLS) is None:
            del os.environ[name]
    before = sys.stdin, sys.stdout, sys.stderr
    try:
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            if getattr(sys, name) is None:
                setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 (as long as the process)
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")
        sys.stdout = cast(IO[str], Named(sys.stdout, OUTPUT))
        sys.stderr = cast(IO[str], BestEffort(sys.stderr, "standard error"))
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


def discard_output() -> None:
    """Nobody reads standard output any longer, or it takes nothing: what is still to be written to it goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
