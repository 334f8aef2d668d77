"""The runs, where their folders are, and how to train and look at them again."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from paddle_tfm.comparison.columns import notes
from paddle_tfm.comparison.facts import Facts
from paddle_tfm.pages.document import commands, definitions, table


def html(facts: Facts) -> str:
    """A table of the runs."""
    top = facts.top()
    rows = []
    for variant, group in facts.groups.items():
        for run in sorted(group, key=lambda run: run.seed):
            results = run.results
            end = f"diverged: {results['diverged']}" if results.get("diverged") else "finished"
            folder = f"<code>{escape(os.path.relpath(run.folder, top))}</code>"
            cells = [str(run.seed), f"{results['steps']:,}", f"{results['best_step']:,}", end]
            rows.append([f"<bdi>{escape(variant)}</bdi>", *map(escape, cells), folder])
    names = ("variant", "seed", "steps", "best step", "end", "folder")
    return table(f"Folders are in {top}", names, rows, texts=(4, 5))


def again(facts: Facts) -> str:
    """Commands, machine, versions and dates."""
    top = shlex.quote(str(facts.top()))
    known = facts.commands()
    items = [
        ("train it again", commands(known[:8]) + (f"<p>and {len(known) - 8} more</p>" if len(known) > 8 else "")),
        ("see every curve", commands([f"paddle-tfm board {top}"])),
        ("compare it again", commands([f"paddle-tfm compare {top}"])),
        *environment(facts.trainings()),
    ]
    return definitions(items)


def environment(trainings: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Date, machine and versions of trainings, each said once."""
    if not trainings:
        return [("machine and date", "not recorded")]
    dates = sorted({str(item.get("started", ""))[:10] for item in trainings} - {""})
    machines = dict.fromkeys(
        f"{item.get('processor')}, {item.get('cores')} cores ({item.get('threads')} in use by a run), "
        f"{item.get('memory_gib'):g} GiB, {item.get('system')}, on {item.get('device')}"
        for item in trainings
    )
    versions = dict.fromkeys(
        ", ".join(f"{name} {version}" for name, version in (item.get("versions") or {}).items()) for item in trainings
    )
    return [
        ("trained", escape(" to ".join(dict.fromkeys([*dates[:1], *dates[-1:]])) + " (UTC)")),
        ("machine", "<br>".join(map(escape, machines))),
        ("versions", "<br>".join(map(escape, versions))),
    ]


def reading(facts: Facts) -> str:
    """What the numbers mean."""
    return "".join(f"<p>{escape(note)}</p>" for note in notes(facts.comparison))
