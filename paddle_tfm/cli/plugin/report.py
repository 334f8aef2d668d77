"""How `paddle-tfm plugin check` prints outcomes: a line each, behind the most likely cause; or as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from paddle_tfm.cli.common import console, echo, notes
from paddle_tfm.files import json_text
from paddle_tfm.language import _, counted, english

if TYPE_CHECKING:
    from rich.status import Status

    from paddle_tfm.testing import Report

COLOURS = {"pass": "green", "expected failure": "yellow", "fail": "red", "skip": "dim", "information": "cyan"}
STATUS_WIDTH, NAME_WIDTH = 16, 22
PARTS = ("invariant", "consequence", "hint")  # of a check that failed


class ReportPrinter:
    """Holds the outcomes of a component until the last one has come, for the first line names the most likely cause;
    meanwhile a terminal shows how far it is."""

    def __init__(self, brief: bool, as_json: bool):
        self.brief, self.as_json, self.failures, self.refusals = brief, as_json, 0, 0
        self.reports: list[Report] = []
        self.status: Status | None = None
        self.lines: list[str] = []
        self.failed: list[str] = []

    @contextmanager
    def component(self, title: str) -> Iterator[None]:
        """While the checks of a component run. Where something ends them, the outcomes that came are printed."""
        self.title, self.count = title, 0
        self.lines.clear()
        self.failed.clear()
        if notes().is_terminal:
            self.status = notes().status(title)
            self.status.start()
        try:
            yield
        finally:
            self._print_outcomes()

    def outcome(self, outcome) -> None:
        from rich.cells import set_cell_size
        from rich.markup import escape

        self.count += 1
        if outcome.status == "fail":
            self.failures += 1
            self.failed.append(outcome.check.name)
        if self.status is not None:
            failed = _("; failed: {checks}").format(checks=", ".join(self.failed)) if self.failed else ""
            text = _("{title}: {checks} done{failed}")
            self.status.update(text.format(title=self.title, checks=counted(self.count, "check"), failed=failed))
        if self.brief and outcome.status not in ("fail", "expected failure"):
            return
        check, colour = outcome.check, COLOURS[outcome.status]
        detail = escape(_(outcome.detail or check.invariant))
        status = set_cell_size(_(outcome.status), STATUS_WIDTH)
        self.lines.append(f"  [{colour}]{status}[/] {check.name:<{NAME_WIDTH}}  {detail}")
        if outcome.status == "fail":
            for part in PARTS:
                text, part = escape(_(getattr(check, part))), set_cell_size(_(part), NAME_WIDTH)
                self.lines.append(f"  {'':<{STATUS_WIDTH}} [dim]{part}[/]  {text}")

    def end(self, report: Report) -> None:
        from rich.cells import set_cell_size
        from rich.markup import escape

        self.reports.append(report)
        self._print_outcomes(report.most_likely)
        if self.as_json:
            return
        counts = {status: sum(each.status == status for each in report) for status in COLOURS}
        if not self.brief:
            for note in report.notes:
                console().print(f"  [dim]{set_cell_size(_('note'), STATUS_WIDTH)}[/] {escape(note)}")
        text = _("{number} {status}")
        parts = {status: text.format(number=number, status=_(status)) for status, number in counts.items() if number}
        summary = _(", ").join(f"[{COLOURS[status]}]{part}[/]" for status, part in parts.items())
        console().print(f"[bold]{self.title}[/]{_(': ')}{summary}")

    def _print_outcomes(self, most_likely: str = "") -> None:
        """What is held, once."""
        from rich.markup import escape

        if self.status is not None:
            self.status.stop()
        if self.lines and not self.as_json:
            cause = _(": most likely: [red]{cause}[/]").format(cause=escape(most_likely)) if most_likely else ""
            console().print("\n".join([f"[bold]{self.title}[/]{cause}", *self.lines]))
        self.status = None
        self.lines.clear()

    def refusal(self, sentence: str) -> None:
        from rich.markup import escape

        self.refusals += 1
        self._print_outcomes()
        if self.as_json:
            notes().print(f"{self.title}: not checked: {sentence}", markup=False)
        else:
            text = _("[bold]{title}[/]: not checked: {sentence}")
            console().print(text.format(title=self.title, sentence=escape(sentence)))

    def finish(self) -> None:
        if self.as_json:
            with english():
                echo(json_text([_as_data(report) for report in self.reports]), nl=False)
        elif self.failures:
            console().print(_("[red]{checks} failed[/]").format(checks=counted(self.failures, "check")))
        if self.failures or self.refusals:
            raise click.exceptions.Exit(1 if self.failures else 2)


def _as_data(report) -> dict[str, object]:
    return {
        "kind": report.kind,
        "name": report.name,
        "most_likely": report.most_likely or None,
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
