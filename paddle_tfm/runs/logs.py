"""A run's logs: JSON lines. Reading them needs no Paddle."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

from paddle_tfm.files import content, naming, opened, write_whole

LOGS = ("metrics.jsonl", "timings.jsonl")  # of a run


def append_row(path: Path, row: dict) -> None:
    """Add a row to a JSON-lines log."""
    with naming(path), path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def read_rows(path: Path) -> list[dict]:
    """The rows of a JSON-lines log, each a mapping with a `step`; truncated or damaged lines are skipped.

    Raises:
        OSError: it cannot be read; a missing one has no rows.
    """
    return rows_of(content(path).splitlines()) if path.exists() else []


class NewRows:
    """The rows that were added to a log since the last call, so that a long one is not read again and again. Of what is
    there at the first call come the rows of the last `most` bytes; a line that is being written comes when it is whole.
    A log that was replaced, as when a training resumes, is read as at the first call.

    Raises:
        OSError: the log cannot be read; a missing one has no rows.
    """

    def __init__(self, path: Path, most: int | None = None):
        self.path, self.most, self.offset = path, most, 0
        self.file: tuple[int, int] | None = None  # device and inode of what was read last
        self.is_new = False  # whether the last call began with another file than the one before

    def __call__(self) -> list[dict]:
        self.is_new = False
        try:
            with opened(self.path) as file:
                return self._read(file)
        except FileNotFoundError:
            self.offset, self.file = 0, None
            return []

    def _read(self, file: BinaryIO) -> list[dict]:
        status = os.fstat(file.fileno())
        if (status.st_dev, status.st_ino) != self.file or status.st_size < self.offset:
            self.file, self.offset, self.is_new = (status.st_dev, status.st_ino), 0, True
        cut = not self.offset and self.most is not None and status.st_size > self.most
        file.seek(status.st_size - (self.most or 0) if cut else self.offset)
        self.offset = file.tell()
        whole_lines, end, _ = file.read().rpartition(b"\n")
        self.offset += len(whole_lines) + len(end)
        lines = whole_lines.splitlines()
        return rows_of(lines[1:] if cut else lines)  # a cut begins within a line


def rows_of(lines: Iterable[bytes]) -> list[dict]:
    """The rows of those lines of a log that are whole."""
    rows = []
    for line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and isinstance(row.get("step"), int):
            rows.append(row)
    return rows


def is_before(row: Mapping, step: int, evaluated: bool) -> bool:
    """Whether a row stays where a training resumes after `step`: a later one is computed again and, unless `evaluated`,
    so is the evaluation at `step`."""
    return row["step"] < step or (row["step"] == step and (evaluated or "evaluation" not in row))


def cut_rows(path: Path, step: int, evaluated: bool) -> None:
    """Remove the rows after `step` and, unless `evaluated`, the evaluation at `step`: they will be computed again."""
    rows = [row for row in read_rows(path) if is_before(row, step, evaluated)]
    write_whole(path, "".join(json.dumps(row) + "\n" for row in rows))
