"""`paddle-tfm plugin`: check that a component is right, write a new plugin."""

from __future__ import annotations

import click

from paddle_tfm.cli.plugin.check import examination
from paddle_tfm.cli.plugin.new import new


@click.group(name="plugin")
def command() -> None:
    """Write plugins, and find out whether they are right. `paddle-tfm ls plugins` lists what is installed.

    \b
    Examples:
      paddle-tfm plugin check rotary              a component that is installed
      paddle-tfm plugin check my_norm.py          your plugin file
      paddle-tfm plugin check --as attention my_transformer.py:MultiHeadAttention
      paddle-tfm plugin new my-norm --kind norm   a package of your own
    """


command.add_command(examination)
command.add_command(new)
