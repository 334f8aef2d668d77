"""Pairs of texts out of files, one at a time: tables, two files line by line, lines of JSON; all also as .gz.

Every complaint names the file and the line. Lines without text on either side are skipped.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path

from paddle_tfm.errors import UserError, unknown
from paddle_tfm.randomness import digest

Pair = tuple[str, str]
File = str | Path
LINE_BYTES = 100_000_000  # of a line at most
PACKED = {  # what a file begins with: by what it is packed, and what unpacks it
    b"\xfd7zXZ\0": ("xz", "xz -dk"),
    b"BZh": ("bzip2", "bzip2 -dk"),
    b"\x28\xb5\x2f\xfd": ("zstd", "zstd -d"),
    b"PK\3\4": ("zip", "unzip"),
    b"\x1f\x8b\x08": ("gzip", "gzip -dk"),
}
MARKUP = ("<?xml", "<!doctype", "<tmx", "<html")  # that a file of lines does not begin with


def raw_lines(readline: Callable[[int], bytes], name: File) -> Iterator[bytes]:
    """The lines of a file, with their ends, by its `readline`.

    Raises:
        UserError: the file is packed otherwise; or a line would fill the memory, which few bytes of a .gz can hold, and
            a device without end.
    """
    for number, line in enumerate(iter(partial(readline, LINE_BYTES), b""), 1):
        if number == 1:
            _refuse_packed(line, name)
        if len(line) == LINE_BYTES:
            raise UserError(f"{name}, line {number}: has {LINE_BYTES:,} bytes or more; is it lines of text?")
        yield line


def _refuse_packed(head: bytes, name: File) -> None:
    for magic, (program, command) in PACKED.items():
        if head.startswith(magic) and (program != "bzip2" or head[4:10] == b"1AY&SY"):  # BZh alone may begin a text
            raise UserError(
                f"{name}: is packed by {program}; unpack it first ({command} FILE): what is read is lines of UTF-8, "
                "plain or in a .gz"
            )


def lines(path: File) -> Iterator[str]:
    """The lines of a UTF-8 file, with their ends; only LF ends a line (not U+2028, which occurs in texts).

    Raises:
        UserError: it is missing, cannot be read, is a pipe, is not UTF-8, or has a line that fills the memory.
    """
    number = 0
    try:
        if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
            raise UserError(f"{path}: a pipe, which can be read only once; write it to a file first")
        with gzip.open(path, "rb") if str(path).endswith(".gz") else Path(path).open("rb") as file:
            for number, line in enumerate(raw_lines(file.readline, path), 1):
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file (looked in {Path.cwd()})") from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}, line {number}: not UTF-8 (byte 0x{error.object[error.start]:02x} at {error.start + 1})"
        ) from error
    except (OSError, ValueError, EOFError, zlib.error) as error:  # a `ValueError`: the path holds a NUL
        after = f", after line {number}" if number else ""
        raise UserError(f"{path}{after}: cannot be read: {error}") from error


def table(path: File, columns: Sequence[int] = (0, 1)) -> Iterator[Pair]:
    """Source and target out of two columns, counted from 0, of a file with a TAB between its cells."""
    for number, line in enumerate(lines(path), 1):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) == 1 and number == 1:
            _refuse_markup(line, path)
        if len(cells) == 1:
            raise UserError(f"{path}, line {number}: no TAB between source and target")
        if len(cells) <= max(columns):
            raise UserError(
                f"{path}, line {number}: {len(cells)} columns, but `columns` asks for column {max(columns)}, counted "
                "from 0"
            )
        source, target = (cells[column].strip() for column in columns)
        if source or target:
            yield _full(source, path, number, "source"), _full(target, path, number, "target")


def side_by_side(source_path: File, target_path: File) -> Iterator[Pair]:
    """Line n of the one file with line n of the other."""
    count = [0, 0]
    for source, target in zip_longest(lines(source_path), lines(target_path)):
        count[0] += source is not None
        count[1] += target is not None
        if sum(count) == 2:
            _refuse_markup(source or "", source_path)
            _refuse_markup(target or "", target_path)
        if source is None or target is None or not (source.strip() or target.strip()):
            continue
        yield (
            _full(source.strip(), source_path, count[0], "source"),
            _full(target.strip(), target_path, count[1], "target"),
        )
    if count[0] != count[1]:
        raise UserError(
            f"{source_path} has {count[0]} lines, but {target_path} has {count[1]}: line n of the one must translate "
            f"line n of the other"
        )


def _refuse_markup(line: str, path: File) -> None:
    if line.lstrip().lower().startswith(MARKUP):
        raise UserError(
            f"{path}: is XML, as TMX is, and pairs are lines: source TAB target, two files side by side, or JSON, an "
            "object a line; write one of these out of it"
        )


def json_lines(path: File, keys: Sequence[str] = ("source", "target")) -> Iterator[Pair]:
    """Source and target out of one JSON object a line. A key may go deeper: `translation.en`. A text is one line:
    line ends and TABs within it become spaces."""
    for number, line in enumerate(lines(path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}, line {number}: not JSON: {error}") from error
        source, target = (_text(row, key, f"{path}, line {number}") for key in keys)
        if source or target:
            yield _full(source, path, number, "source"), _full(target, path, number, "target")


def _text(row: object, key: str, where: str) -> str:
    value, rest = row, key
    while rest:
        if not isinstance(value, Mapping):
            raise UserError(f"{where}: must hold an object with `{key}`, but holds {str(value)[:40]!r}")
        name = rest if rest in value else rest.partition(".")[0]
        if name not in value:
            raise UserError(f"{where}: {unknown('key', name, value)}")
        value, rest = value[name], rest[len(name) + 1 :]
    if not isinstance(value, str):
        raise UserError(f"{where}: `{key}` must be a text, but is {str(value)[:40]}")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise UserError(f"{where}: `{key}` holds half of a surrogate pair, which is no character")
    return value.translate(dict.fromkeys(map(ord, "\t\n\r"), " ")).strip()


def share(text: str) -> float:
    """A hash of the text as a number in [0, 1), evenly distributed: a share s of all texts is below s."""
    return digest(text) / 2**64


def _full(text: str, path: File, number: int, side: str) -> str:
    if not text:
        raise UserError(f"{path}, line {number}: the {side} is empty, but its other side is not")
    return text
