"""Lines in and lines out: files, compressed or not, and the standard streams."""

from __future__ import annotations

import gzip
import io
import os
import select
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, cast

from paddle_tfm.cli.common import STANDARD, echo, notes, warn
from paddle_tfm.data.lines import LINE_BYTES, decoded_lines, lines, opened, raw_lines, require_encoding
from paddle_tfm.errors import UserError
from paddle_tfm.files import naming
from paddle_tfm.language import _, counted

CHUNK_LINES, CHUNK_BYTES = 2_000, 10_000_000  # in memory at a time: no line more once there are as many of either
ARRIVING = 0.02  # seconds after its first line in which a chunk waits for more: a full pipe is empty for a moment

Write = Callable[[str], None]
Progress = Callable[[int], None]
# What is done with a chunk of lines: it gets them, how many were before them, what writes text at once, and what is
# called with the number of lines that are done.
Job = Callable[[list[str], int, Write, Progress], None]


@dataclass
class Lines:
    """The lines that come in, from anywhere."""

    name: str
    opened: AbstractContextManager[Iterable[str] | io.BufferedIOBase]
    total: int | None = None  # how many lines, where counting them is quick
    quiet: bool = False  # no progress bar: they are few, or a person types them
    encoding: str = "utf-8"
    undecodable: list[int] = field(default_factory=list)  # numbers of the lines that are not of this encoding

    def chunks(self) -> Iterator[list[str]]:
        """Lines of text without their ends, as many as stay in memory at a time, and no more than have arrived; the
        first chunk may be empty.

        Bytes that are no character become U+FFFD, so that there is an output line for each input line whatever a line
        holds.

        Raises:
            UserError: the file is not whole, or is packed twice; or a line would fill the memory.
        """
        chunk: list[str] = []
        is_any, size, by = False, 0, 0.0
        with self.opened as raw:
            arriving, decoded = None, raw
            if isinstance(raw, io.BufferedIOBase):
                arriving = Arriving(raw) if isinstance(raw, io.BufferedReader) else None
                encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
                stream = raw_lines((arriving or raw).readline, self.name)
                decoded = decoded_lines(stream, self.name, encoding, self.undecodable)
            for line in cast(Iterable[str], decoded):
                is_any = True
                by = by if chunk else time.monotonic() + ARRIVING
                chunk.append(line.rstrip("\r\n"))
                size += len(line)
                is_full = len(chunk) == CHUNK_LINES or size >= CHUNK_BYTES
                if is_full or (arriving and not arriving.has_arrived(by)):
                    yield chunk
                    chunk, size = [], 0
            if chunk or not is_any:
                yield chunk

    def warn_of_undecodable(self) -> None:
        """Say, at the end, that lines are of another encoding."""
        if numbers := self.undecodable:
            one, several = (
                _("{file}: line {first} is not {encoding}"),
                _("{file}: {number} lines are not {encoding} (the first: line {first})"),
            )
            which = (one if len(numbers) == 1 else several).format(
                file=self.name, number=f"{len(numbers):,}", first=numbers[0], encoding=self.encoding.upper()
            )
            text = _(
                "{which}; bytes that are no character were read as �; --encoding names another encoding, for instance "
                "gb18030"
            )
            warn(text.format(which=which))


def open_lines(texts: Sequence[str], source: str | None, encoding: str | None = None) -> Lines:
    """The texts of the command line, or else the file `source`, which may be packed; None or -: standard input.

    Args:
        encoding: of the bytes. Default: UTF-8, and of a file what its byte order mark says.
    Raises:
        UserError: the file is missing or cannot be unpacked; there is no such encoding.
    """
    try:
        require_encoding(encoding)
    except ValueError as error:
        raise UserError(f"--encoding: {error}") from error
    undecodable: list[int] = []
    if texts and source is not None:
        raise UserError(_("--input: there are TEXTs too; give one or the other"))
    if texts:
        typed = decoded_lines(map(os.fsencode, texts), "TEXT", "utf-8", undecodable)
        return Lines("TEXT", nullcontext(typed), quiet=True, undecodable=undecodable)
    named = encoding or "utf-8"
    if source in (None, STANDARD):
        if is_typed := sys.stdin.isatty():
            notes().print(_("[dim]Type a line, Ctrl-D to end.[/]"))
        stream = cast(io.BufferedIOBase, sys.stdin.buffer)
        return Lines(_("standard input"), nullcontext(stream), quiet=is_typed, encoding=named)
    if Path(source).is_fifo() or Path(source).is_char_device():
        return Lines(source, Path(source).open("rb"), encoding=named)
    with opened(source):
        total = sum(1 for _line in lines(source, encoding, [])) if notes().is_terminal else None
    return Lines(source, nullcontext(lines(source, encoding, undecodable)), total, False, named, undecodable)


class Beside:
    """A file with a line for each line that comes in: given translations, prefixes.

    Raises:
        UserError: it cannot be read, has too few lines, or, by `require_end`, too many.
    """

    def __init__(self, file: str, encoding: str | None):
        self._file, self._taken, self._lines = file, 0, lines(file, encoding)
        with opened(file):  # before a run is loaded
            pass

    def take(self, number: int) -> list[str]:
        """The next lines, without their ends."""
        taken = [line.rstrip("\r\n") for line in islice(self._lines, number)]
        self._taken += len(taken)
        if len(taken) < number:
            text = _("{file}: has only {number} lines, but needs one for each line that comes in")
            raise UserError(text.format(file=self._file, number=f"{self._taken:,}"))
        return taken

    def require_end(self) -> None:
        """Raises UserError where lines are left when none comes in any more."""
        if next(self._lines, None) is not None:
            text = _("{file}: has more lines than came in ({number}), but needs one for each of them")
            raise UserError(text.format(file=self._file, number=f"{self._taken:,}"))


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


def answer(lines: Lines, job: Job, target: str) -> None:
    """Hand the lines to `job`, a chunk at a time, and write to `target` what it writes. A progress bar shows unless the
    lines are few, or lines and outputs appear on the same terminal."""
    done = 0
    quiet = lines.quiet or (target == STANDARD and sys.stdout.isatty())
    try:
        with _bar(lines.total, quiet) as progress, writing(target) as write:
            for chunk in lines.chunks():
                job(chunk, done, write, progress)
                write("")  # that a file is empty where no line came
                done += len(chunk)
    except KeyboardInterrupt:
        text = _("[yellow]Stopped after {lines}, which are written.[/]")
        notes().print(text.format(lines=counted(done, "line")))
        raise


@contextmanager
def writing(target: str) -> Iterator[Write]:
    """Yields a function that writes text at once. A file keeps its old content until that is called: an error before it
    costs nothing."""
    file: IO[str] | None = None

    def write(text: str) -> None:
        nonlocal file
        if target == STANDARD:
            echo(text, nl=False)
            return
        if file is None:
            opened = (gzip.open if target.endswith(".gz") else open)(target, "wt", encoding="utf-8", newline="\n")
            file = cast(IO[str], opened)
        with naming(Path(target)):
            file.write(text)
            file.flush()

    try:
        yield write
    finally:
        if file is not None:
            with naming(Path(target)):  # here alone: an error of the block above is of something else
                file.close()


@contextmanager
def _bar(total: int | None, quiet: bool) -> Iterator[Progress]:
    """A progress bar on standard error, if that is a terminal; yields what is called with the number of lines that are
    done."""
    if quiet or not notes().is_terminal:
        yield lambda lines: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = BarColumn(), MofNCompleteColumn(), TextColumn("lines"), TimeRemainingColumn()
    with Bars(*columns, console=notes(), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda lines: progress.advance(task, lines)
