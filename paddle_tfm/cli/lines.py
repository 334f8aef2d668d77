"""Lines in and lines out: files, packed or not, and the standard streams."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import click

from paddle_tfm.cli.common import notes
from paddle_tfm.errors import UserError

CHUNK = 2_000  # lines in memory at a time
STANDARD = "-"


class Given(NamedTuple):
    """What is to be translated."""

    name: str
    lines: AbstractContextManager[Iterable[bytes]]
    total: int | None = None  # how many lines, where that is seen at once
    typed: bool = False


def given_lines(texts: Sequence[str], source: str | None) -> Given:
    if texts and source is not None:
        raise UserError("--input: there are TEXTs too; give one or the other")
    if texts:
        return Given("TEXT", nullcontext([os.fsencode(text) for text in texts]))
    if source in (None, STANDARD):
        if typed := sys.stdin.isatty():
            notes().print("[dim]Type a line, Ctrl-D to end.[/]")
        return Given("standard input", nullcontext(click.get_binary_stream("stdin")), typed=typed)
    if source.endswith(".gz"):
        return Given(source, gzip.open(source))
    total = None
    if notes().is_terminal and Path(source).is_file():
        with Path(source).open("rb") as file:
            total = sum(1 for _ in file)
    return Given(source, Path(source).open("rb"), total)


def chunks(given: Given) -> Iterator[list[str]]:
    """Lines of text without their ends, `CHUNK` at a time, typed ones one by one; at least one chunk, which may be
    empty.

    Raises:
        UserError: a line is not UTF-8, or the file is no whole gzip file.
    """
    size, number = 1 if given.typed else CHUNK, 0

    def texts() -> Iterator[str]:
        nonlocal number
        for number, line in enumerate(raw, 1):
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")

    try:
        with given.lines as raw:
            lines = texts()
            yield list(islice(lines, size))
            while chunk := list(islice(lines, size)):
                yield chunk
    except UnicodeDecodeError as error:
        raise UserError(f"{given.name} line {number}: not UTF-8 text (byte {error.start + 1} of the line)") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{given.name} after line {number}: not a whole gzip file: {error}") from error


def check_output(target: str, source: str | None, option: str = "--output") -> None:
    """Tell before the work what cannot be written."""
    if target == STANDARD:
        return
    path = Path(target)
    if source not in (None, STANDARD) and path.exists() and path.samefile(source):
        raise UserError(f"{option} {target}: that is the input; name another file")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UserError(f"{option} {target}: no file can be written there")


@contextmanager
def writing(target: str) -> Iterator[Callable[[str], object]]:
    """Yields what writes text at once. A file keeps what it held until then."""
    if target == STANDARD:
        yield lambda text: click.echo(text, nl=False)
        return
    packed = target.endswith(".gz")
    with (gzip.open if packed else open)(target, "wt", encoding="utf-8", newline="\n") as file:
        yield lambda text: (file.write(text), file.flush())
