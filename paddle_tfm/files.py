"""Files of a run: written so that a kill or a loss of power leaves them whole, and read so that damage is reported in a
sentence."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import reprlib
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from paddle_tfm.errors import UserError
from paddle_tfm.language import _

PARTIAL = ".partial"  # ends the name of what is being written
LARGEST_JSON = 1 << 26  # bytes: a vocabulary of two million pieces has half of them
LARGEST = 1 << 31  # bytes of any other file that is read as a whole: the log of some million steps


def write_whole(path: Path, content: str | bytes, shared: bool = False) -> None:
    """Write a file (text as UTF-8) atomically: whenever we are killed or the machine stops, it holds its old content or
    all of `content`. If the disk is full, the old content stays. `shared`: the folder is not ours alone: it may hold
    somebody else's files of any name, and others may be writing the same file at the same time, as the runs of a sweep
    that is distributed do with what is the sweep's; it holds what one of them wrote."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    partial = beside(path) if shared else path.with_name(path.name + PARTIAL)
    try:
        with naming(path):
            partial.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
            sync(partial)
            partial.replace(path)
            sync(path.parent)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def beside(path: Path) -> Path:
    """Where something is written that is to take the place of `path`: a name beside it that nobody else has."""
    return path.with_name(f"{path.name}.{uuid4().hex}{PARTIAL}")


def remove(path: Path, ignore_errors: bool = False) -> None:
    """Remove a file, or a folder with all that it holds; of a link the link. One that is gone may be."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=ignore_errors)
        return
    with suppress(*([OSError] if ignore_errors else [])):
        path.unlink(missing_ok=True)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Within this block an OSError that names no file, such as that of a full disk, names `path`."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def sync(path: Path) -> None:
    """Wait until what was written to a file is on the disk; of a folder: which names it holds."""
    with naming(path):
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        except OSError:
            if path.is_file():  # some network file systems cannot do it with folders
                raise
        finally:
            os.close(number)


def sync_all(folder: Path) -> None:
    """Wait until a folder is on the disk with all that it holds, and its name and those of its parents up to the third,
    which may be as new as it is."""
    for path in (*folder.rglob("*"), folder, *list(folder.absolute().parents)[:3]):
        sync(path)


def folders_with(folder: Path, *names: str) -> list[Path]:
    """The folders in `folder`, itself too, that hold a file of one of these names, in order; what is still being
    written or copied is left out."""
    files = (file.relative_to(folder) for name in names for file in folder.rglob(name))
    return sorted({folder / file.parent for file in files if not any(part.endswith(PARTIAL) for part in file.parts)})


def json_text(value: object) -> str:
    """`value` as a JSON file holds it: null for what is no finite number, one line feed at the end. Control characters
    are escaped, also those that JSON allows, so that the text commands no terminal."""
    text = json.dumps(_finite(value), indent=1, ensure_ascii=False, allow_nan=False)
    return re.sub("[\x7f-\x9f]", lambda character: f"\\u{ord(character[0]):04x}", text) + "\n"


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def opened(path: Path, largest: int = LARGEST) -> BinaryIO:
    """A file, open for reading.

    Raises:
        OSError: it cannot be opened, or has more bytes than `largest`.
    """
    file = path.open("rb")
    size = os.fstat(file.fileno()).st_size
    if size <= largest:
        return file
    file.close()
    raise OSError(errno.EFBIG, f"it has {size:,} bytes, and at most {largest:,} are read", str(path))


def content(path: Path, largest: int = LARGEST) -> bytes:
    """What a file holds; `opened` says what it raises."""
    with opened(path, largest) as file:
        return file.read()


def json_value(path: Path) -> Any:
    """What a JSON file holds.

    Raises:
        UserError: it cannot be read, or is no JSON.
    """
    try:
        return json.loads(content(path, LARGEST_JSON))
    except OSError as error:
        raise UserError(_("{path}: cannot be read: {why}").format(path=path, why=error.strerror)) from error
    except (ValueError, RecursionError) as error:
        raise UserError(_("{path}: damaged: {why}").format(path=path, why=error)) from error


def read_json(path: Path, keys: Iterable[str] = ()) -> dict:
    """The mapping that a JSON file holds.

    Raises:
        UserError: it cannot be read, holds anything else, or lacks one of `keys`.
    """
    data = json_value(path)
    if not isinstance(data, dict):
        text = _("{path}: damaged: it must hold a mapping, but holds {data}")
        raise UserError(text.format(path=path, data=reprlib.repr(data)[:40]))
    if lacking := [key for key in keys if key not in data]:
        raise UserError(_("{path}: damaged: it lacks {names}").format(path=path, names=", ".join(lacking)))
    return data


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()
