"""`paddle-tfm show RECIPE`: the recipe with everything merged."""

from __future__ import annotations

import click

from paddle_tfm.cli.common import overrides_argument, recipe_argument


@click.command(name="show")
@recipe_argument
@overrides_argument
def command(recipe: str, overrides) -> None:
    """Print RECIPE with its base and overrides merged, as YAML that `run` accepts again.

    \b
    Examples:
      paddle-tfm show quickstart
      paddle-tfm show reverse model.norm.eps=1e-6 > mine.yaml
    """
    from paddle_tfm.recipe import loading as recipes
    from paddle_tfm.recipe import yaml_lines

    click.echo(yaml_lines.dump(recipes.load(recipe, overrides).data), nl=False)
