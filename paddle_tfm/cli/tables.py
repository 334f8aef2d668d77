"""How every table of the command line is printed: for a terminal of any width, for a pipe, as JSON, as CSV."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from paddle_tfm.cli.common import console, echo
from paddle_tfm.files import json_text
from paddle_tfm.language import _

if TYPE_CHECKING:
    from paddle_tfm.tabular import Table

REST = "in --json and --csv, and on a wider terminal"


def table_options(command: Callable) -> Callable:
    """The options --json and --csv; the command gets `form`: "json", "csv" or None."""
    command = click.option("--csv", "form", flag_value="csv", default=None, help="As CSV, for programs.")(command)
    return click.option("--json", "form", flag_value="json", default=None, help="As JSON, for programs.")(command)


def page_width() -> int | None:
    """Cells of a line of the terminal; in a pipe any number."""
    return console().width if console().is_terminal else None


def emit(tables: Table | list[Table], form: str | None = None, data: object = None) -> None:
    """Print tables as `form` says.

    Args:
        data: what --json prints. Default: the rows of all tables, each a mapping.
    """
    tables = tables if isinstance(tables, list) else [tables]
    if form == "json":
        records = [record for table in tables for record in table.records()]
        echo(json_text(records if data is None else data), nl=False)
    elif form == "csv":
        _csv(tables)
    else:
        for i, table in enumerate(tables):
            if i:
                console().print()
            print_table(table)


def _csv(tables: list[Table]) -> None:
    """All tables under one line of keys where they have the same; else with an empty line between them."""
    before = None
    for table in tables:
        keys, _, rows = table.csv().partition("\n")
        if keys != before:
            echo(("" if before is None else "\n") + keys)
        echo(rows, nl=False)
        before = keys


def print_table(table: Table, rest: str = "") -> None:
    """A table for people; below it, which columns there was no room for, and where they are: `rest`."""
    from rich.text import Text

    if table.title:
        console().print(Text(table.title, style="italic"), soft_wrap=True)
    for line in table.lines(page_width()):
        text = Text()
        for part, style in line:
            text.append(part, style)
        console().print(text, soft_wrap=True)
    if table.dropped:
        console().print(Text(f"{_(', ').join(table.dropped)}: {rest or _(REST)}", style="dim"))
