"""In what two runs that should be the same differ: the proof that a run that was killed and resumed is the one that was
let alone. Needs no Paddle."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from paddle_tfm.errors import UserError
from paddle_tfm.files import read_json
from paddle_tfm.runs.logs import read_rows

TIMES = ("seconds", "wall_seconds", "tokens_per_second", "decoding")  # of results.json: no two trainings have the same


def differences(one: Path, other: Path) -> list[str]:
    """A sentence for each file of the run in `one` that is another in `other`: for arrays the first that differs, for
    the log the first row."""
    names = sorted(path.relative_to(one).as_posix() for path in one.glob("checkpoints/*/*.safetensors"))
    sentences = [*(_arrays(one / name, other / name, name) for name in names), _log(one, other)]
    sentences += [_text(path, other / path.name) for path in sorted(one.glob("predictions*.tsv"))]
    return [sentence for sentence in [*sentences, _results(one, other)] if sentence]


def _arrays(one: Path, other: Path, name: str) -> str | None:
    try:
        before, after = load_file(one), load_file(other)
    except (OSError, SafetensorError) as error:
        return f"{name}: {error}"
    if lacking := sorted(before.keys() ^ after.keys()):
        return f"{name}: only one of the two has {lacking[0]}"
    for tensor, array in before.items():
        again = after[tensor]
        if array.shape != again.shape or array.dtype != again.dtype:
            return f"{name}: {tensor} is {_kind(array)} and {_kind(again)}"
        if array.tobytes() != again.tobytes():
            return f"{name}: {tensor} {_distance(array, again)}"
    return None


def _kind(array: np.ndarray) -> str:
    return f"{array.dtype} {list(array.shape)}"


def _distance(one: np.ndarray, other: np.ndarray) -> str:
    one, other = np.atleast_1d(one), np.atleast_1d(other)
    where = np.argwhere((one != other) & ~(np.isnan(one) & np.isnan(other)))
    if not len(where):
        return "differs in its bits only, by the sign of a zero or the kind of a NaN"
    first = tuple(int(index) for index in where[0])
    values = f"{one[first]!s} and {other[first]!s}"
    return f"differs: {len(where):,} of {one.size:,} numbers, the first at {list(first)}: {values}"


def _log(one: Path, other: Path) -> str | None:
    rows = zip_longest(*(read_rows(folder / "metrics.jsonl") for folder in (one, other)), fillvalue={})
    for before, after in rows:
        if before != after:
            return f"metrics.jsonl: {_row(before, after)}"
    return None


def _row(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    step = before.get("step", after.get("step"))
    for name in [*before, *after]:
        if before.get(name) != after.get(name):
            return f"{name} of step {step} is {before.get(name, 'not there')} and {after.get(name, 'not there')}"
    return f"step {step}"


def _text(one: Path, other: Path) -> str | None:
    if not other.exists():
        return f"{one.name}: there is one only"
    lines = zip_longest(one.read_text("utf-8").splitlines(), other.read_text("utf-8").splitlines(), fillvalue="")
    for number, (before, after) in enumerate(lines, 1):
        if before != after:
            return f"{one.name}: line {number} is {before!r} and {after!r}"
    return None


def _results(one: Path, other: Path) -> str | None:
    try:
        before, after = (read_json(folder / "results.json") for folder in (one, other))
    except UserError as error:
        return str(error)
    for name in sorted({*before, *after} - {*TIMES}):
        if before.get(name) != after.get(name):
            return f"results.json: {name} is {before.get(name)} and {after.get(name)}"
    return None
