"""How to train and look at the runs again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.pages.document import commands, definitions
from paddle_tfm.protocols import Section
from paddle_tfm.units import in_shell

PAPER = "It writes this page again, each of its tables as CSV and LaTeX, and each figure as SVG and PDF."


class Again(Section):
    """Commands that train and compare all of it again, the machine, versions and dates."""

    heading = "Again"
    place = 800

    def html(self, facts: Facts) -> str:
        """A list."""
        top = in_shell(facts.top())
        known = facts.commands()
        more = f"<p>and {len(known) - 8} more</p>" if len(known) > 8 else ""
        items = [
            ("train it again", commands(known[:8]) + more),
            ("see every curve", commands([f"paddle-tfm board {top}"])),
            ("compare it again", commands([f"paddle-tfm compare {top}"])),
            ("for a paper", f"{commands([f'paddle-tfm report {top}'])}<p>{PAPER}</p>"),
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
