"""Opening a dataset: its files in `<cache>/<folder>/<upstream name>`, fetched if missing and used if their hash is
right, and its splits, read."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from paddle_tfm.data.fetch import Unreachable, fetch
from paddle_tfm.errors import UserError
from paddle_tfm.files import json_value, sha256, write_whole
from paddle_tfm.language import _
from paddle_tfm.protocols import Dataset, Example, RemoteFile

if TYPE_CHECKING:
    from paddle_tfm.recipe.plan import Plan

VARIABLE = "PADDLE_TFM_DATA"
RECORD = ".checked.json"  # beside the files: name → SHA-256, and the size and time of change when it was hashed


def root() -> Path:
    """The folder of all datasets: that of the environment variable, else one in the platform's cache folder.

    Raises:
        UserError: the variable begins with a home folder that is not known.
    """
    if path := os.environ.get(VARIABLE):
        try:
            return Path(path).expanduser()
        except RuntimeError as error:
            raise UserError(f"{VARIABLE}={path}: {error}") from error
    return Path(platformdirs.user_cache_dir("paddle_tfm", appauthor=False)) / "data"


def folder(dataset: Dataset | type[Dataset]) -> Path:
    """The folder of this dataset's files."""
    return root() / dataset.folder


def present(dataset: Dataset | type[Dataset], files: Sequence[RemoteFile]) -> list[RemoteFile]:
    """Those of `files` that are on disk."""
    return [file for file in files if (folder(dataset) / file.name).is_file()]


def first_hashes(dataset: Dataset | type[Dataset]) -> dict[str, str]:
    """Name → SHA-256 of the files at their first use."""
    return {name: entry["sha256"] for name, entry in _record(folder(dataset)).items()}


def ensure(dataset: Dataset) -> dict[str, Path]:
    """Upstream name → path of the files that `dataset` needs, each fetched if missing and checked.

    Raises:
        UserError: a file is missing and cannot be fetched, or has another hash than it should.
    """
    where, files = folder(dataset), dataset.files()
    if any(not (where / file.name).is_file() for file in files):
        _fetch(files, where)
    _check(files, where)
    return {file.name: where / file.name for file in files}


def examples(dataset: Dataset, split: str) -> Iterator[Example]:
    """The examples of a split, one at a time, the same at every call and in the same order. Missing files are
    fetched.

    Raises:
        UserError: a file is missing and cannot be fetched, has another hash than it should, or cannot be read.
    """
    return dataset.read(split, ensure(dataset))


def fetch_all(plan: Plan) -> None:
    """Fetch and check the files of every dataset that a run names, for a process that starts others on the same files.

    Raises:
        UserError: a file is missing and cannot be fetched, or has another hash than it should.
    """
    for dataset in _datasets(plan):
        ensure(dataset)


def missing(plan: Plan) -> list[str]:
    """The folders of the datasets that a run names and that are not on disk, or not whole."""
    return [each.folder for each in _datasets(plan) if len(present(each, each.files())) < len(each.files())]


def _datasets(plan: Plan) -> list[Dataset]:
    parts = [part for component in plan.components.values() for part in component.walk()]
    return [part.build() for part in parts if part.kind == "dataset"]


# ------------------------------------------------------------------------------------------------ fetched and checked


def _fetch(files: Sequence[RemoteFile], where: Path) -> None:
    try:
        where.mkdir(parents=True, exist_ok=True)
        for file in files:
            if not (where / file.name).is_file():
                fetch(file, where / file.name)
    except Unreachable as error:
        missing = [file for file in files if not (where / file.name).is_file()]
        listing = "".join(f"\n  {file.name}  from {' or '.join(file.urls)}" for file in missing)
        text = _("{name} cannot be fetched: {error}. Put into {where} by hand:{listing}")
        raise UserError(text.format(name=where.name, error=error, where=where, listing=listing)) from error
    except OSError as error:
        names = ", ".join(file.name for file in files if not (where / file.name).is_file())
        text = _(
            "{where} lacks {files} and cannot be written: {why}; set {variable} to a folder that has what is "
            "missing, or to one that can be written"
        )
        raise UserError(
            text.format(where=where, files=names, why=error.strerror or error, variable=VARIABLE)
        ) from error


def _check(files: Sequence[RemoteFile], where: Path) -> None:
    """Hash what changed since its last check; record what is right, if the folder can be written."""
    known, new = _record(where), {}
    for file in files:
        path, entry = where / file.name, known.get(file.name, {})
        state = path.stat()
        expected = file.sha256 or entry.get("sha256")
        stamp = [state.st_size, state.st_mtime_ns, state.st_ctime_ns]  # the last is of this disk: nobody brings it
        if expected is not None and (entry.get("sha256"), entry.get("stamp")) == (expected, stamp):
            continue
        actual = sha256(path)
        if expected is not None and actual != expected:
            raise UserError(_mismatch(file, path, actual, expected))
        new[file.name] = {"sha256": actual, "stamp": stamp}
    if new:
        with contextlib.suppress(OSError):  # without a record, it is only hashed again
            write_whole(where / RECORD, json.dumps({**_record(where), **new}, indent=1))


def _mismatch(file: RemoteFile, path: Path, actual: str, expected: str) -> str:
    start = f"{path}: its SHA-256 is {actual[:16]}…, but"
    if file.sha256 is None:
        return _("{start} was {expected}… when first used; to accept another, delete it and {record}").format(
            start=start, expected=expected[:16], record=path.with_name(RECORD)
        )
    return _("{start} should be {expected}…; delete it, so that it is fetched again").format(
        start=start, expected=expected[:16]
    )


def _record(where: Path) -> dict[str, dict]:
    try:
        data = json_value(where / RECORD)
        return {name: entry for name, entry in data.items() if isinstance(entry["sha256"], str)}
    except (UserError, AttributeError, KeyError, TypeError):
        return {}
