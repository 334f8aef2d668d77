"""`paddle-tfm completion SHELL`: what the shell needs to complete verbs, recipes and overrides."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command(name="completion")
@click.argument("shell", type=click.Choice(list(SHELLS)))
def command(shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    Examples:
      eval "$(paddle-tfm completion bash)"      # in ~/.bashrc
      eval "$(paddle-tfm completion zsh)"       # in ~/.zshrc
      paddle-tfm completion fish > ~/.config/fish/completions/paddle-tfm.fish
    """
    from paddle_tfm.cli import group

    script = SHELLS[shell](group, {}, "paddle-tfm", "_PADDLE_TFM_COMPLETE")
    click.echo(script.source())
