"""`paddle-tfm cp RECIPE FILE`: a recipe to edit."""

from __future__ import annotations

import re
from pathlib import Path

import click

from paddle_tfm.cli.common import echo, recipe_argument
from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.units import in_shell


@click.command(name="cp")
@recipe_argument
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--summary", metavar="TEXT", help="What yours is for, in one line. Default: that it is a copy.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def command(recipe: str, file: Path, summary: str | None, force: bool) -> None:
    """Copy RECIPE, with its comments, to FILE; its name becomes FILE's, so that its runs get a folder of their own, and
    its summary is yours: lists and reports show it.

    \b
    Examples:
      paddle-tfm cp quickstart mine.yaml && paddle-tfm run mine.yaml
      paddle-tfm cp quickstart mine.yaml --summary "quickstart with RMSNorm"
    """
    from paddle_tfm.files import write_whole
    from paddle_tfm.recipe import yaml_lines
    from paddle_tfm.recipe.reading import find

    source = find(recipe)
    target = file / source.name if file.is_dir() else file
    if target.exists() and not force:
        raise UserError(_("{file} exists; add --force to overwrite it").format(file=target))
    if not target.parent.is_dir():
        raise UserError(_("{folder}: no such folder").format(folder=target.parent))
    name = re.sub(r"[^\w.-]+", "-", target.stem).lstrip(".-")
    summary = f"a copy of {Path(recipe).stem}, to be changed" if summary is None else summary
    text = yaml_lines.read_text(source, recipe).replace("\r\n", "\n")
    for key, value in (("name", name), ("summary", " ".join(summary.split()))):
        line = yaml_lines.dump({key: value}).rstrip("\n")
        text = _with_line(text, key, line)
    write_whole(target, text, shared=True)
    echo(_("{target} written. Edit it, then: paddle-tfm run {file}").format(target=target, file=in_shell(target)))


def _with_line(text: str, key: str, line: str) -> str:
    """`text` with `line` in the place of the key, which may take several lines, or as its first line of no comment."""
    pattern = re.compile(rf"^{key}:.*(?:\n[ \t]+.*)*$", re.MULTILINE)
    if pattern.search(text):
        return pattern.sub(lambda match: line, text, count=1)
    start = re.search(r"^(?![#\s])", text, re.MULTILINE)
    place = start.start() if start else len(text)
    return f"{text[:place]}{line}\n{text[place:]}"
