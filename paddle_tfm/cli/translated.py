"""Commands whose help is in the reader's language, while they are written in English."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Iterator

import click

from paddle_tfm.language import _

FILL = "\0"  # behind each character that is two cells wide, while click counts characters
WIDE = re.compile(r"([\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60“”…])")
ROW = re.compile(r"(\s+\S.*?(?: {2,}| # )|)(.*)")  # of an example: a command, and what it does


class Formatter(click.HelpFormatter):
    """Breaks lines by what characters take on a terminal."""

    def write_text(self, text: str) -> None:
        super().write_text(_filled(text))

    def write_dl(self, rows, *arguments, **options) -> None:
        super().write_dl([(first, _filled(second)) for first, second in rows], *arguments, **options)

    def getvalue(self) -> str:
        return super().getvalue().replace(FILL, "")


class Context(click.Context):
    """One that writes help so."""

    formatter_class = Formatter


def _filled(text: str) -> str:
    return WIDE.sub(rf"\1{FILL}", text) if any(map(WIDE.match, text)) else text


def translated(command: click.Command) -> click.Command:
    """A copy of `command` that speaks the reader's language, as do its subcommands."""
    command = copy.copy(command)
    command.context_class = Context
    command.help = "".join(before + _(text) for before, text in texts(command.help or ""))
    command.params = [with_help(parameter) for parameter in command.params]
    if isinstance(command, click.Group):
        command.commands = {name: translated(each) for name, each in command.commands.items()}
    return command


def with_help(parameter: click.Parameter) -> click.Parameter:
    """A copy of an option with its help in the reader's language."""
    if isinstance(parameter, click.Option) and parameter.help:
        parameter = copy.copy(parameter)
        parameter.help = _(" ".join((parameter.help or "").split()))
    return parameter


def texts(help_text: str) -> Iterator[tuple[str, str]]:
    """The pieces of a help text that are translated, each behind what stands before it: paragraphs, and of those whose
    lines are kept (`\\b`) the heading and what is said of each line."""
    for i, paragraph in enumerate(inspect.cleandoc(help_text).split("\n\n")):
        gap = "\n\n" if i else ""
        if not paragraph.startswith("\b"):
            yield gap, " ".join(paragraph.split())
            continue
        heading, *rows = paragraph.removeprefix("\b\n").split("\n")
        yield f"{gap}\b\n", heading
        for row in rows:
            before, text = ROW.fullmatch(row).groups()  # type: ignore[union-attr]
            yield (f"\n{before}", text) if before else (f"\n{row}", "")
