"""`paddle-tfm translate RUN`: one line out for each line in."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from paddle_tfm.cli.common import create_registry, device_option, notes, plugin_option, use_device, warn
from paddle_tfm.cli.evaluate import checkpoint_option, search_option


@click.command(name="translate")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@search_option
@checkpoint_option
@plugin_option
@device_option
def command(run: Path, texts, search, checkpoint: str, plugins, device) -> None:
    """Translate each TEXT, or each line of standard input, with the run in folder RUN.

    \b
    Examples:
      paddle-tfm translate runs/quickstart/pre-layer/seed-1 "Tuesday, March 5, 2024"
      paddle-tfm translate runs/quickstart/pre-layer/seed-1 < dates.txt > out.txt
    """
    from paddle_tfm import yaml_lines
    from paddle_tfm.errors import UserError

    registry = create_registry(plugins)
    use_device(device)
    from paddle_tfm.train.run import load_run

    loaded = load_run(run, registry, checkpoint, warn)
    chosen = registry.build("search", yaml_lines.value(search), "--search") if search else None
    if texts:
        lines = list(texts)
    else:
        if sys.stdin.isatty():
            notes().print("[dim]Type a line, Ctrl-D to end.[/]")
        try:
            lines = [line.rstrip("\r\n") for line in click.get_text_stream("stdin", encoding="utf-8", errors="strict")]
        except UnicodeDecodeError as error:
            raise UserError(f"standard input is not UTF-8 text (byte {error.start})") from error
    for line in loaded.translate(lines, chosen):
        click.echo(line)
