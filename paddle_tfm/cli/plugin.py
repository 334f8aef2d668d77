"""`paddle-tfm plugin`: check that a component is right, write a new plugin, list what is installed."""

from __future__ import annotations

from pathlib import Path

import click

from paddle_tfm.cli.common import create_registry, echo, plugin_option
from paddle_tfm.cli.plugin_check import examination
from paddle_tfm.cli.tables import table_options
from paddle_tfm.plugin_template import WHAT, write


@click.group(name="plugin")
def command() -> None:
    """Write plugins, and find out whether they are right.

    \b
    Examples:
      paddle-tfm plugin check rotary              a component that is installed
      paddle-tfm plugin check my_norm.py          your plugin file
      paddle-tfm plugin check --as attention my_transformer.py:MultiHeadAttention
      paddle-tfm plugin new my-norm --kind norm   a package of your own
      paddle-tfm plugin ls                        what is installed, and what failed to load
    """


command.add_command(examination)


@command.command(name="ls")
@table_options
@plugin_option
def listing(plugins, form) -> None:
    """Each plugin with its version and what it registers; and what failed to load, with the reason."""
    from paddle_tfm.cli.plugin_list import print_plugins

    print_plugins(create_registry(plugins), form)


@command.command(name="new")
@click.argument("name")
@click.option("--kind", type=click.Choice(list(WHAT)), default="norm", show_default=True, help="What it is.")
@click.option("--single-file", is_flag=True, help="One file for `--plugin` instead of a package.")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Where. Default: NAME in this directory.")
def new(name: str, kind: str, single_file: bool, out: Path | None) -> None:
    """Write a plugin that works as it is, for you to change: an installable package with the class, a test that runs
    the conformance kit, a recipe that compares it with the reference, and a README; or, with --single-file, one file. A
    listener is always one file.

    \b
    Examples:
      paddle-tfm plugin new my-norm --kind norm
      paddle-tfm plugin new my-encoding --kind position --single-file
      paddle-tfm plugin new my-log --kind listener
    """
    registry = create_registry()
    taken = dict.fromkeys(registry.plugins.providers, "a plugin")
    taken |= {each.name: f"{kind} of plugin '{each.provider.plugin}'" for each in registry if each.kind == kind}
    new_plugin = write(name, kind, single_file, out, taken)
    for path in new_plugin.files:
        echo(f"wrote {path}")
    echo("\n" + new_plugin.advice)
