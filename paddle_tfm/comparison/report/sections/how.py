"""How it was done: the runs, how to do it again, and how to say it in a paper."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from paddle_tfm.comparison.report import paper
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.language import _, english
from paddle_tfm.pages.document import commands, definitions
from paddle_tfm.protocols import Section
from paddle_tfm.tabular import Table, column
from paddle_tfm.units import in_shell

PAPER = "It writes this page again, each of its tables as CSV and LaTeX, and each figure as SVG and PDF."


class Runs(Section):
    """How each run ended, and where its folder is."""

    heading = "Runs"
    summary = "how each ended, its best step and its folder"
    place = 700

    def tables(self, facts: Facts) -> dict[str, Table]:
        top = facts.top()
        rows = [(name, run) for name, group in facts.groups.items() for run in sorted(group, key=lambda run: run.seed)]

        def end(row: Any) -> str:
            diverged = row[1].results.get("diverged")
            return f"{_('diverged')}: {diverged}" if diverged else _("finished")

        columns = [
            column("variant", of=lambda row: row[0]),
            column("seed", right=True, of=lambda row: row[1].seed),
            column("steps", None, "{:,}".format, right=True, of=lambda row: row[1].results["steps"]),
            column("best_step", "best step", "{:,}".format, right=True, of=lambda row: row[1].results["best_step"]),
            column("end", of=end),
            column("folder", of=lambda row: os.path.relpath(row[1].folder, top)),
        ]
        return {"runs": Table(columns, rows, _("Folders are in {top}").format(top=top))}


class Again(Section):
    """Commands that train and compare all of it again, the machine, versions and dates."""

    heading = "Again"
    summary = "commands that train and compare it again; machine and versions"
    place = 800

    def html(self, facts: Facts) -> str:
        top = in_shell(facts.top())
        known = facts.commands()
        more = f"<p>{_('and {number} more').format(number=len(known) - 8)}</p>" if len(known) > 8 else ""
        items = [
            (_("train it again"), commands(known[:8]) + more),
            (_("see every curve"), commands([f"paddle-tfm board {top}"])),
            (_("compare it again"), commands([f"paddle-tfm compare {top}"])),
            (_("for a paper"), f"{commands([f'paddle-tfm report {top}'])}<p>{_(PAPER)}</p>"),
            *environment(facts.trainings()),
        ]
        return definitions(items)


def environment(trainings: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Date, machine and versions of trainings, each said once."""
    if not trainings:
        return [(_("machine and date"), _("not recorded"))]
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
        (_("trained"), escape(_(" to ").join(dict.fromkeys([*dates[:1], *dates[-1:]])) + " (UTC)")),
        (_("machine"), "<br>".join(map(escape, machines))),
        (_("versions"), "<br>".join(map(escape, versions))),
    ]


class Paper(Section):
    """How it was done, as a paper says it: the numbers filled in, and the entries of its bibliography."""

    heading = "For a paper"
    summary = "a paragraph of methods, and BibTeX"
    place = 850

    def html(self, facts: Facts) -> str:
        with english():  # what a paper says
            entries, methods = "\n\n".join(paper.bibliography(facts).values()), paper.methods(facts)
        return (
            f'<h3>{_("Methods")}</h3><p class="text">{escape(methods)}</p>'
            f'<h3>BibTeX</h3><pre class="command"><code>{escape(entries)}</code></pre>'
        )

    def data(self, facts: Facts) -> Mapping[str, Any]:
        return {"methods": paper.methods(facts), "bibtex": paper.bibliography(facts)}
