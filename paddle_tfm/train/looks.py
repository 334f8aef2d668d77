"""`looks.json` of a sweep whose seeds are listed: which runs each of its comparisons was the first to show. Whoever
lists more seeds later continues a test that has looked before (`comparison.statistics.Listed`)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from paddle_tfm.files import json_text, write_whole
from paddle_tfm.train.forms import Form, read_form

FILE = "looks.json"


class _Looks(Form):
    looks: list[list[str]]


def read_looks(sweep: Path) -> dict[str, int]:
    """Name of a run (`post/seed-1`) → the look that was the first to see it, from 0 on; empty where there was none.

    Raises:
        UserError: the file is damaged.
    """
    stored = read_form(sweep / FILE, _Looks)["looks"] if (sweep / FILE).exists() else []
    return {name: number for number, names in enumerate(stored) for name in names}


def write_look(sweep: Path, runs: Iterable[str]) -> None:
    """Add a look at `runs`; to see again what was seen is none."""
    seen = read_looks(sweep)
    if not (new := sorted(set(runs) - seen.keys())):
        return
    looks: list[list[str]] = [[] for _ in range(max(seen.values(), default=-1) + 1)]
    for name, number in seen.items():
        looks[number].append(name)
    write_whole(sweep / FILE, json_text({"looks": [*looks, new]}), shared=True)
