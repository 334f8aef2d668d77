"""Lines in and lines out: files, compressed or not, and the standard streams."""

from __future__ import annotations

import gzip
import io
import os
import select
import sys
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple, cast

from paddle_tfm.cli.common import echo, notes
from paddle_tfm.data.pairs import LINE_BYTES, raw_lines
from paddle_tfm.errors import UserError
from paddle_tfm.files import naming

CHUNK_LINES, CHUNK_BYTES = 2_000, 10_000_000  # in memory at a time: no line more once there are as many of either
ARRIVING = 0.02  # seconds after its first line in which a chunk waits for more: a full pipe is empty for a moment
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


class Arriving:
    """Lines of an open file or pipe, and whether the next has arrived, which a `BufferedReader` would wait for."""

    def __init__(self, file: IO[bytes]):
        self._descriptor = file.fileno()
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()  # of a line whose end has not arrived
        self._ended = False

    def readline(self, most: int) -> bytes:
        """The next line, or `most` bytes of it; nothing at the end."""
        while self._must_read():
            self._read()
        if self._lines:
            return self._lines.popleft()
        line, self._rest = bytes(self._rest[:most]), self._rest[most:]
        return line

    def has_arrived(self, by: float) -> bool:
        """Whether `readline` returns at once, at the latest at `by`, a time of `time.monotonic`."""
        while self._must_read():
            if not select.select([self._descriptor], [], [], max(0.0, by - time.monotonic()))[0]:
                return False
            self._read()
        return True

    def _must_read(self) -> bool:
        return not self._lines and not self._ended and len(self._rest) < LINE_BYTES

    def _read(self) -> None:
        data = os.read(self._descriptor, 1 << 16)
        self._ended = not data
        first, *others = data.split(b"\n")
        self._rest += first
        for other in others:
            self._lines.append(bytes(self._rest) + b"\n")
            self._rest = bytearray(other)


def chunks(source: LineSource, undecodable: list[int]) -> Iterator[list[str]]:
    """Lines of text without their ends, as many as stay in memory at a time, and no more than have arrived; the first
    chunk may be empty.

    Bytes that are not UTF-8 become U+FFFD, so that there is an output line for each input line whatever a line holds;
    the numbers of such lines, from 1, are appended to `undecodable`.

    Raises:
        UserError: the file is no whole gzip file, or has a line that fills the memory.
    """
    chunk: list[str] = []
    number, size, by = 0, 0, 0.0
    try:
        with source.lines as raw:
            arriving = Arriving(raw) if isinstance(raw, io.BufferedReader) else None
            lines = raw if isinstance(raw, list) else raw_lines((arriving or raw).readline, source.name)
            for number, line in enumerate(lines, 1):
                encoding = "utf-8-sig" if number == 1 else "utf-8"
                try:
                    text = line.decode(encoding)
                except UnicodeDecodeError:
                    undecodable.append(number)
                    text = line.decode(encoding, errors="replace")
                by = by if chunk else time.monotonic() + ARRIVING
                chunk.append(text.rstrip("\r\n"))
                size += len(line)
                is_full = len(chunk) == CHUNK_LINES or size >= CHUNK_BYTES
                if is_full or (arriving and not arriving.has_arrived(by)):
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
