"""`paddle-tfm cp RECIPE FILE`: a recipe to edit."""

from __future__ import annotations

import re
from pathlib import Path

import click

from paddle_tfm.cli.common import recipe_argument
from paddle_tfm.errors import UserError


@click.command(name="cp")
@recipe_argument
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def command(recipe: str, file: Path, force: bool) -> None:
    """Copy RECIPE, with its comments, to FILE; its name becomes FILE's, so that its runs get a folder of their own.

    \b
    Example:
      paddle-tfm cp quickstart mine.yaml && paddle-tfm run mine.yaml
    """
    from paddle_tfm.recipe import loading as recipes

    source = recipes.find(recipe)
    target = file / source.name if file.is_dir() else file
    if target.exists() and not force:
        raise UserError(f"{target} exists; add --force to overwrite it")
    if not target.parent.is_dir():
        raise UserError(f"{target.parent}: no such folder")
    name = re.sub(r"[^\w.-]+", "-", target.stem).lstrip(".-")
    text = re.sub(r"^name: .*$", f"name: {name}", source.read_text("utf-8"), count=1, flags=re.MULTILINE)
    target.write_text(text, "utf-8")
    click.echo(f"{target} written. Edit it, then: paddle-tfm run {target}")
