"""Lines in and lines out: files, compressed or not, and the standard streams."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple, cast

from paddle_tfm.cli.common import echo, notes
from paddle_tfm.data.pairs import raw_lines
from paddle_tfm.errors import UserError
from paddle_tfm.files import naming

CHUNK_LINES, CHUNK_BYTES = 2_000, 10_000_000  # in memory at a time: no line more once there are as many of either
STANDARD = "-"


class LineSource(NamedTuple):
    """Where lines to translate come from."""

    name: str
    lines: AbstractContextManager[list[bytes] | IO[bytes]]
    total: int | None = None  # how many lines, where counting them is quick
    interactive: bool = False  # a person types them


def open_lines(texts: Sequence[str], source: str | None) -> LineSource:
    """The texts of the command line, or else the file `source`; None or -: standard input."""
    if texts and source is not None:
        raise UserError("--input: there are TEXTs too; give one or the other")
    if texts:
        return LineSource("TEXT", nullcontext([os.fsencode(text) for text in texts]))
    if source in (None, STANDARD):
        if interactive := sys.stdin.isatty():
            notes().print("[dim]Type a line, Ctrl-D to end.[/]")
        return LineSource("standard input", nullcontext(sys.stdin.buffer), interactive=interactive)
    if source.endswith(".gz"):
        return LineSource(source, cast(AbstractContextManager[IO[bytes]], gzip.open(source)))
    total = None
    if notes().is_terminal and Path(source).is_file():
        with Path(source).open("rb") as file:
            total = sum(1 for _ in file)
    return LineSource(source, Path(source).open("rb"), total)


def chunks(source: LineSource, undecodable: list[int]) -> Iterator[list[str]]:
    """Lines of text without their ends, as many as stay in memory at a time, interactive ones singly; the first chunk
    may be empty.

    Bytes that are not UTF-8 become U+FFFD, so that there is an output line for each input line whatever a line holds;
    the numbers of such lines, from 1, are appended to `undecodable`.

    Raises:
        UserError: the file is no whole gzip file, or has a line that fills the memory.
    """
    most, number = 1 if source.interactive else CHUNK_LINES, 0
    chunk: list[str] = []
    size = 0
    try:
        with source.lines as raw:
            lines = raw if isinstance(raw, list) else raw_lines(raw, source.name)
            for number, line in enumerate(lines, 1):
                encoding = "utf-8-sig" if number == 1 else "utf-8"
                try:
                    text = line.decode(encoding)
                except UnicodeDecodeError:
                    undecodable.append(number)
                    text = line.decode(encoding, errors="replace")
                chunk.append(text.rstrip("\r\n"))
                size += len(line)
                if len(chunk) == most or size >= CHUNK_BYTES:
                    yield chunk
                    chunk, size = [], 0
            if chunk or not number:
                yield chunk
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{source.name} after line {number}: not a whole gzip file: {error}") from error


def check_output(target: str, source: str | None, option: str = "--output") -> None:
    """Raises UserError, before the work, where the output cannot be written."""
    if target == STANDARD:
        return
    path = Path(target)
    if source not in (None, STANDARD) and path.exists() and path.samefile(source):
        raise UserError(f"{option} {target}: that is the input; name another file")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UserError(f"{option} {target}: no file can be written there")


@contextmanager
def writing(target: str) -> Iterator[Callable[[str], object]]:
    """Yields a function that writes text at once. A file keeps its old content until this is entered."""
    if target == STANDARD:
        yield partial(echo, nl=False)
        return
    file = (gzip.open if target.endswith(".gz") else open)(target, "wt", encoding="utf-8", newline="\n")

    def write(text: str) -> None:
        with naming(Path(target)):
            file.write(text)
            file.flush()

    try:
        yield write
    finally:
        with naming(Path(target)):  # here alone: an error of the block above is of something else
            file.close()
