"""`paddle-tfm show RECIPE` or `KIND:NAME`: a recipe with everything merged, or all about one component."""

from __future__ import annotations

from pathlib import Path

import click

from paddle_tfm.cli.common import complete_recipe, create_registry, echo, overrides_argument, plugin_option
from paddle_tfm.errors import UserError, nearest, unknown
from paddle_tfm.hookspecs import KINDS
from paddle_tfm.language import _


def complete_what(context: click.Context, parameter: click.Parameter, incomplete: str):
    """Recipes, components behind their kind, then files."""
    from click.shell_completion import CompletionItem

    kind, colon, name = incomplete.partition(":")
    if colon:
        names = create_registry().names(kind) if kind in KINDS else []
        return [CompletionItem(f"{kind}:{each}") for each in names if each.startswith(name)]
    kinds = [CompletionItem(f"{each}:") for each in KINDS if incomplete and each.startswith(incomplete)]
    *recipes, files = complete_recipe(context, parameter, incomplete)
    return [*recipes, *kinds, files]


@click.command(name="show")
@click.argument("recipe", metavar="RECIPE|KIND:NAME", shell_complete=complete_what)
@overrides_argument
@click.option("--json", "as_json", is_flag=True, help="Of a component: as JSON, for programs.")
@plugin_option
def command(recipe: str, overrides, as_json: bool, plugins) -> None:
    """Print RECIPE with its base and overrides merged, as YAML that `run` accepts again.

    Of a component, KIND:NAME: its formula, what the engine fills in, its options with types and defaults, papers, the
    checks that it cannot pass, recipes that name it, and how to name it in yours.

    \b
    Examples:
      paddle-tfm show quickstart
      paddle-tfm show reverse model.norm.eps=1e-6 > mine.yaml
      paddle-tfm show norm:batch
      paddle-tfm show search:beam --json
    """
    from paddle_tfm.recipe import loading as recipes
    from paddle_tfm.recipe import yaml_lines
    from paddle_tfm.recipe.reading import shipped

    kind, colon, name = recipe.partition(":")
    if colon and not Path(recipe).exists():
        if kind not in KINDS:
            raise UserError(unknown("kind", kind, KINDS))
        _show_component(kind, name, overrides, as_json, plugins)
        return
    if recipe not in shipped() and not Path(recipe).is_file() and not Path(recipe).suffix:
        kind, name = _of_bare_name(recipe, plugins)
        _show_component(kind, name, overrides, as_json, plugins)
        return
    if as_json or plugins:
        text = _("{option} goes with a component: paddle-tfm show KIND:NAME")
        raise UserError(text.format(option="--json" if as_json else "--plugin"))
    echo(yaml_lines.dump(recipes.load(recipe, overrides).data), nl=False)


def _of_bare_name(name: str, plugins) -> tuple[str, str]:
    """The component that a name without kind means.

    Raises:
        UserError: none, or several; the nearest recipe or component is named.
    """
    from paddle_tfm.recipe.reading import shipped

    entries = list(create_registry(plugins))
    matching = [entry for entry in entries if entry.name == name]
    if len(matching) == 1:
        return matching[0].kind, name
    if matching:
        text = _("'{name}' is of several kinds; choose {names}")
        raise UserError(text.format(name=name, names=" or ".join(f"{each.kind}:{name}" for each in matching)))
    if name in KINDS:
        text = _("'{name}' is a kind; `paddle-tfm ls components {name}` lists its components")
        raise UserError(text.format(name=name))
    near = nearest(name, sorted({*shipped(), *(entry.name for entry in entries if not entry.wrong_on_purpose)}))
    text = _("unknown recipe or component '{name}'{hint} `paddle-tfm ls` and `ls components` list all")
    raise UserError(text.format(name=name, hint=near or _(";")))


def _show_component(kind: str, name: str, overrides, as_json: bool, plugins) -> None:
    from paddle_tfm.cli.show.component import facts, print_page
    from paddle_tfm.files import json_text
    from paddle_tfm.runtime import load_paddle

    if overrides:
        text = _("{override}: overrides go with a recipe, but {kind}:{name} is a component")
        raise UserError(text.format(override=overrides[0], kind=kind, name=name))
    registry = create_registry(plugins)
    load_paddle()
    about = facts(registry.entry(kind, name), registry)
    if as_json:
        echo(json_text(about), nl=False)
    else:
        print_page(about)
