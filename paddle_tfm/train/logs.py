"""A run's logs: JSON lines. Reading them needs no Paddle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from paddle_tfm.files import write_whole


def append_row(path: Path, row: dict) -> None:
    """Add a row to a JSON-lines log."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def read_rows(path: Path) -> list[dict]:
    """The rows of a JSON-lines log, each a mapping with a `step`; truncated or damaged lines are skipped."""
    if not path.exists():
        return []
    rows = []
    for line in path.read_text("utf-8", errors="replace").splitlines():
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
