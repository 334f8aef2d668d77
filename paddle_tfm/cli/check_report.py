"""How the outcomes of checks are printed: as they come, a line each; or whole, as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from paddle_tfm.cli.common import console, count, notes

if TYPE_CHECKING:
    from paddle_tfm.testing import Report

COLOURS = {"pass": "green", "expected failure": "yellow", "fail": "red", "skip": "dim", "information": "cyan"}
STATUS_WIDTH, NAME_WIDTH = 16, 22


class ReportPrinter:
    """Prints outcomes as they come, and counts failures."""

    def __init__(self, brief: bool, as_json: bool):
        self.brief, self.as_json, self.failures, self.refusals = brief, as_json, 0, 0
        self.reports: list[Report] = []

    def begin(self, title: str) -> None:
        self.title, self.lines = title, 0
        if not self.as_json and not self.brief:
            console().print(f"[bold]{title}[/]")

    def outcome(self, outcome) -> None:
        from rich.markup import escape

        self.failures += outcome.status == "fail"
        if self.as_json or (self.brief and outcome.status not in ("fail", "expected failure")):
            return
        if self.brief and not self.lines:
            console().print(f"[bold]{self.title}[/]")
        self.lines += 1
        check, colour = outcome.check, COLOURS[outcome.status]
        detail = escape(outcome.detail or check.invariant)
        console().print(f"  [{colour}]{outcome.status:<{STATUS_WIDTH}}[/] {check.name:<{NAME_WIDTH}}  {detail}")
        if outcome.status == "fail":
            for part in ("invariant", "consequence", "hint"):
                console().print(f"  {'':<{STATUS_WIDTH}} [dim]{part:<{NAME_WIDTH}}[/]  {escape(getattr(check, part))}")

    def end(self, report: Report) -> None:
        from rich.markup import escape

        self.reports.append(report)
        if self.as_json:
            return
        counts = {status: sum(each.status == status for each in report) for status in COLOURS}
        if not self.brief:
            for note in report.notes:
                console().print(f"  [dim]{'note':<{STATUS_WIDTH}}[/] {escape(note)}")
        summary = ", ".join(f"[{COLOURS[status]}]{number} {status}[/]" for status, number in counts.items() if number)
        console().print(f"[bold]{self.title}[/]: {summary}")

    def refusal(self, sentence: str) -> None:
        from rich.markup import escape

        self.refusals += 1
        if self.as_json:
            notes().print(f"{self.title}: not checked: {sentence}", markup=False)
        else:
            console().print(f"[bold]{self.title}[/]: not checked: {escape(sentence)}")

    def finish(self) -> None:
        if self.as_json:
            click.echo(json.dumps([_as_data(report) for report in self.reports], indent=1, ensure_ascii=False))
        elif self.failures:
            console().print(f"[red]{count(self.failures, 'check')} failed[/]")
        if self.failures or self.refusals:
            raise click.exceptions.Exit(1 if self.failures else 2)


def _as_data(report) -> dict[str, object]:
    return {
        "kind": report.kind,
        "name": report.name,
        "notes": list(report.notes),
        "checks": [
            {
                "name": outcome.check.name,
                "status": outcome.status,
                "detail": outcome.detail,
                "invariant": outcome.check.invariant,
            }
            for outcome in report
        ],
    }
