"""Files of a run: written so that a kill or a loss of power leaves them whole, and read so that damage is reported in a
sentence."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import reprlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from paddle_tfm.errors import UserError

PARTIAL = ".partial"  # ends the name of what is being written


def write_whole(path: Path, content: str | bytes, shared: bool = False) -> None:
    """Write a file (text as UTF-8) atomically: whenever we are killed or the machine stops, it holds its old content or
    all of `content`. If the disk is full, the old content stays. `shared`: others may be writing it at the same time,
    as the runs of a sweep that is distributed do with what is the sweep's; it holds what one of them wrote."""
    partial = path.with_name(f"{path.name}.{uuid4().hex}{PARTIAL}" if shared else path.name + PARTIAL)
    try:
        with naming(path):
            partial.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
            sync(partial)
            partial.replace(path)
            sync(path.parent)
    except OSError:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


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
            if not path.is_dir():  # some network file systems cannot do it with folders
                raise
        finally:
            os.close(number)


def sync_all(folder: Path) -> None:
    """Wait until a folder is on the disk with all that it holds, and its name and those of its parents up to the third,
    which may be as new as it is."""
    for path in folder.rglob("*"):
        sync(path)
    for path in (folder, *list(folder.absolute().parents)[:3]):
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


def json_value(path: Path) -> Any:
    """What a JSON file holds.

    Raises:
        UserError: it cannot be read, or is no JSON.
    """
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: damaged: {error}") from error


def read_json(path: Path, keys: Iterable[str] = ()) -> dict:
    """The mapping that a JSON file holds.

    Raises:
        UserError: it cannot be read, holds anything else, or lacks one of `keys`.
    """
    data = json_value(path)
    if not isinstance(data, dict):
        raise UserError(f"{path}: damaged: it must hold a mapping, but holds {reprlib.repr(data)[:40]}")
    if lacking := [key for key in keys if key not in data]:
        raise UserError(f"{path}: damaged: it lacks {', '.join(lacking)}")
    return data


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()
