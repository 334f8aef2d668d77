"""Lines of text out of files: plain or packed, in any encoding that is known or named."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from encodings.aliases import aliases
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

from paddle_tfm.errors import UserError, nearest
from paddle_tfm.language import _

File = str | Path
LINE_BYTES = 100_000_000  # of a line at most
MARKS = {  # what a file may begin with, and the encoding that it says
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark begins alike
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
SHOWN = 10  # files of a zip that a sentence names
CANDIDATES = ("gb18030", "latin-1")  # that are proposed for what is not UTF-8; GBK is part of the first
ONE_LINE = dict.fromkeys(map(ord, "\t\n\r"), " ")
HEAD = 1 << 12  # bytes in which more than every fourth is 0 in UTF-16, and hardly one in a text


def _zstd(file: IO[bytes]) -> Any:
    try:
        from backports import zstd
    except ImportError as error:
        text = _("{file}: is packed by zstd, which needs a package: pip install backports.zstd; or unpack it first")
        raise UserError(text.format(file=file.name)) from error
    return zstd.open(file)


PACKINGS: dict[bytes, tuple[str, Callable[[IO[bytes]], Any]]] = {  # what a file begins with: what packs it, and unpacks
    b"\x1f\x8b\x08": ("gzip", gzip.open),
    b"BZh": ("bzip2", bz2.open),
    b"\xfd7zXZ\0": ("xz", lzma.open),
    b"\x28\xb5\x2f\xfd": ("zstd", _zstd),
    b"PK\3\4": ("zip", zipfile.ZipFile),
}
SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
UNREADABLE = (  # a `ValueError`: the path holds a NUL
    OSError, ValueError, EOFError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile
)  # fmt: skip
OLD_OFFICE = b"\xd0\xcf\x11\xe0"  # what .xls and .doc begin with
NEW_OFFICE = "[Content_Types].xml"  # what .xlsx and .docx hold, which are zips


def _packing(head: bytes) -> tuple[str, Callable[[IO[bytes]], Any]] | None:
    for magic, packing in PACKINGS.items():
        if head.startswith(magic) and (magic != b"BZh" or head[4:10] == b"1AY&SY"):  # BZh alone may begin a text
            return packing
    return None


@contextmanager
def opened(path: File) -> Iterator[tuple[str, Any]]:
    """(name without the end that says how it is packed, the file, unpacked if it is packed, whatever it is called).
    `FILE.zip/NAME` is one of several files in a zip.

    Raises:
        UserError: it is missing, a pipe, or a zip of several files of which none is named; or, also within the block,
            cannot be read or unpacked.
    """
    try:
        with _unpacked(Path(path)) as named:
            yield named
    except FileNotFoundError as error:
        text = _("{path}: no such file (looked in {folder})")
        raise UserError(text.format(path=path, folder=Path.cwd())) from error
    except Exception as error:
        if not isinstance(error, UNREADABLE) and type(error).__name__ != "ZstdError":  # whose package may be missing
            raise
        raise UserError(_("{path}: cannot be read: {why}").format(path=path, why=error)) from error


@contextmanager
def _unpacked(path: Path) -> Iterator[tuple[str, Any]]:
    outer, member = path, ""
    if archive := next((each for each in path.parents if each.is_file()), None):
        outer, member = archive, path.relative_to(archive).as_posix()
    if outer.exists() and not outer.is_file() and not outer.is_dir():
        raise UserError(_("{path}: a pipe, which can be read only once; write it to a file first").format(path=path))
    with outer.open("rb") as file:
        if file.peek(4).startswith(OLD_OFFICE):
            raise UserError(_office(outer))
        program, unpack = _packing(file.peek(10)) or ("", None)
        if member and program != "zip":
            raise UserError(_("{path}: {outer} is no zip, and holds no files").format(path=path, outer=outer))
        if unpack is None:
            yield str(path), file
        elif program == "zip":
            with zipfile.ZipFile(file) as archived, archived.open(_member(archived, outer, member)) as unpacked:
                yield unpacked.name, io.BufferedReader(cast(Any, unpacked))
        else:
            with unpack(file) as unpacked:
                yield str(path.with_suffix("") if path.suffix in SUFFIXES else path), unpacked


def _member(archive: zipfile.ZipFile, path: Path, wanted: str) -> str:
    names = [each.filename for each in archive.infolist() if not each.is_dir()]
    if NEW_OFFICE in names:
        raise UserError(_office(path))
    if wanted in names:
        return wanted
    if not wanted and len(names) == 1:
        return names[0]
    shown = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
    text = _("{wanted}: {path} holds {files}{which}")
    which = nearest(wanted, names) or _("; name one: {path}/NAME").format(path=path)
    raise UserError(text.format(wanted=path / wanted, path=path, files=shown or _("no file"), which=which))


def _office(path: Path) -> str:
    text = _("{path}: is a workbook or document of Excel, Word or the like, and no text; save it as CSV (UTF-8) there")
    return text.format(path=path)


def require_encoding(name: str | None) -> None:
    """Refuse an encoding that nobody knows.

    Raises:
        ValueError: with the nearest name.
    """
    try:
        b"a".decode(name or "utf-8")
    except LookupError:
        hint = nearest(name, [*aliases, *aliases.values()]) or _("; for instance gb18030, utf-16 or latin-1")
        text = _("`encoding` must be one of Python's text encodings, but is '{name}'{hint}")
        raise ValueError(text.format(name=name, hint=hint)) from None
    except UnicodeDecodeError:
        pass  # of two bytes a character


def raw_lines(readline: Callable[[int], bytes], name: File) -> Iterator[bytes]:
    """The lines of an unpacked stream, with their ends, by its `readline`.

    Raises:
        UserError: the stream is packed (again) or UTF-16; or a line would fill the memory, which few packed bytes can
            hold, and a device without end.
    """
    for number, line in enumerate(iter(partial(readline, LINE_BYTES), b""), 1):
        if len(line) == LINE_BYTES:
            text = _("{place}: has {bytes} bytes or more; is it lines of text?")
            raise UserError(text.format(place=at_line(name, number), bytes=f"{LINE_BYTES:,}"))
        if number == 1 and (packing := _packing(line)):
            text = _("{file}: holds what is packed by {program}; unpack that first")
            raise UserError(text.format(file=name, program=packing[0]))
        if number == 1 and line[:HEAD].count(0) > len(line[:HEAD]) // 4:
            text = _(
                "{file}: is UTF-16, or no text (more than every fourth byte is 0); if it is text, say which by its "
                "encoding, utf-16-le or utf-16-be, or save it as UTF-8"
            )
            raise UserError(text.format(file=name))
        yield line


def lines(path: File, encoding: str | None = None, undecodable: list[int] | None = None) -> Iterator[str]:
    """The lines of a text file, packed or not, with their ends; only LF ends a line (not U+2028, which occurs in
    texts).

    Args:
        encoding: of its bytes, where no byte order mark says it. Default: UTF-8. undecodable: gets the numbers of
            lines that are not of that encoding, whose bytes become U+FFFD; without it they are refused.
    Raises:
        UserError: it is missing, cannot be read or unpacked, is a pipe, is of another encoding, or has a line that
            fills the memory.
    """
    with opened(path) as (_name, file):
        yield from decoded(file, path, encoding, undecodable)


def decoded(file: Any, name: File, encoding: str | None = None, undecodable: list[int] | None = None) -> Iterator[str]:
    """The lines of an unpacked stream as texts: `lines`."""
    head = file.peek(4)
    encoding = next((each for mark, each in MARKS.items() if head.startswith(mark)), encoding or "utf-8")
    if len("\n".encode(encoding)) > 1:  # a LF is more than the byte of a LF
        errors = "strict" if undecodable is None else "replace"
        yield from iter(partial(io.TextIOWrapper(file, encoding, errors, newline="\n").readline, LINE_BYTES), "")
        return
    yield from decoded_lines(raw_lines(file.readline, name), name, encoding, undecodable)


def decoded_lines(
    raw: Iterable[bytes], name: File, encoding: str, undecodable: list[int] | None = None
) -> Iterator[str]:
    """Lines of bytes as texts: `lines`. The mark of `utf-8-sig` stands in the first."""
    for number, line in enumerate(raw, 1):
        try:
            yield line.decode(encoding)
        except UnicodeDecodeError as error:
            if undecodable is None:
                raise UserError(at_line(name, number, _not_decodable(error))) from error
            undecodable.append(number)
            yield line.decode(encoding, errors="replace")
        encoding = "utf-8" if encoding == "utf-8-sig" else encoding


def _not_decodable(error: UnicodeDecodeError) -> str:
    """What stands where text of another encoding does, read by each encoding that is likely."""
    data: bytes = error.object
    seen = []
    for candidate in CANDIDATES:
        if candidate != error.encoding:
            text = one_line(data.decode(candidate, errors="replace"))
            first = next((i for i, letter in enumerate(text) if not letter.isascii()), 0)
            shown = text[max(0, first - 10) : first + 10]
            seen.append(_("`encoding: {encoding}` reads “{text}”").format(encoding=candidate, text=shown))
    return _("not {encoding} (byte {byte} at {place}); if it is text, name what reads it: {readings}").format(
        encoding=error.encoding.upper(),
        byte=f"0x{data[error.start]:02x}",
        place=error.start + 1,
        readings=_(", ").join(seen),
    )


def at_line(file: File, number: int, sentence: str = "") -> str:
    """Where something is: `train.tsv, line 3`; and what is said of it."""
    which = _("{file}, line {number}").format(file=file, number=number)
    return _("{which}: {sentence}").format(which=which, sentence=sentence) if sentence else which


def one_line(text: str) -> str:
    """A text without TABs and line ends, which become spaces."""
    return text.translate(ONE_LINE).strip()
