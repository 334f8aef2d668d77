"""What the verbs share: the registry with its plugins, the device, stopping, and a place to print."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import click

from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.units import visible, whole_number

MAX_GPUS = 10_000  # of one machine, to whoever names one
STANDARD = "-"  # in the place of a file: standard input or output
NOTEBOOK = "JPY_PARENT_PID"  # Jupyter sets it for what its cells run

plugin_option = click.option(
    "--plugin",
    "plugins",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE.py",
    help="Load components and listeners from a file of yours (repeatable).",
)
device_option = click.option(
    "--device",
    default=None,
    metavar="cpu|gpu|gpu:N",
    help="The device. Default: a GPU if there is one and Paddle was built for it, else the CPU.",
)
overrides_argument = click.argument(
    "overrides", nargs=-1, metavar="[a.b=value]...", shell_complete=lambda *arguments: complete_override(*arguments)
)


def create_registry(plugins: Sequence[Path] = ()):
    """All components: those of installed plugins and of `--plugin` files."""
    from paddle_tfm.plugins import create_plugins
    from paddle_tfm.registry import Registry

    if plugins:
        from paddle_tfm.runtime import load_paddle

        load_paddle()  # quietly, before the file imports it
    return Registry(create_plugins(plugins))


def use_device(name: str | None) -> str:
    """Import Paddle and choose where to compute; returns the device's name.

    Raises:
        UserError: Paddle is missing, or there is no such device.
    """
    from paddle_tfm.runtime import load_paddle

    paddle = load_paddle()
    from paddle_tfm.place import SELECTED_GPUS

    gpus = paddle.device.cuda.device_count() if paddle.is_compiled_with_cuda() else 0
    chosen = os.environ.get(SELECTED_GPUS, "0").partition(",")[0]
    name = name or (f"gpu:{chosen}" if gpus else "cpu")
    kind, colon, text = name.partition(":")
    number = whole_number(text, 0, MAX_GPUS) if colon else 0
    if kind not in ("cpu", "gpu") or number is None or (kind == "cpu" and colon):
        raise UserError(_("--device {name}: must be cpu, gpu or gpu:N").format(name=name))
    if kind == "gpu" and number >= gpus:
        missing = _("--device {name}: this Paddle finds no such GPU; `paddle-tfm doctor` says more. Use --device cpu")
        lacking = _(
            "--device {name}: this Paddle is built for CPUs only; `paddle-tfm doctor` says more. Use --device cpu"
        )
        raise UserError((missing if paddle.is_compiled_with_cuda() else lacking).format(name=name))
    paddle.set_device(name)
    return name


@lru_cache(maxsize=1)
def console():
    """Where tables and sentences go: standard output, with colours only on a terminal (NO_COLOR switches them off)."""
    return _console(sys.stdout.isatty(), stderr=False)


@lru_cache(maxsize=1)
def notes():
    """Where progress and warnings go: standard error."""
    # The cell of a notebook is no terminal, though what `!command` runs in says so: a bar would be printed again and
    # again below itself.
    return _console(sys.stderr.isatty() and NOTEBOOK not in os.environ, stderr=True)


def echo(text: str = "", nl: bool = True) -> None:
    """Write to standard output what has no layout, such as outputs of a model, JSON or CSV: as it is, but for what a
    terminal would take for commands."""
    click.echo(visible(text) if sys.stdout.isatty() else text, nl=nl)


def _console(terminal: bool, stderr: bool):
    from rich.console import Console

    class Plain(Console):
        def render_str(self, text: str, **options: Any) -> Any:
            return super().render_str(visible(text), **options)  # before it is broken into lines

        def render(self, *arguments: Any) -> Any:
            for part in super().render(*arguments):  # of tables too, which are no `str`
                yield part if part.control else part._replace(text=visible(part.text))

        def on_broken_pipe(self) -> None:
            raise  # the BrokenPipeError at hand: `cli.Verbs` ends quietly

    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return Plain(
        stderr=stderr,
        highlight=False,
        width=None if terminal else 120,
        soft_wrap=not terminal,  # in a pipe a sentence is a line
        color_system=colours,
        force_terminal=None if terminal else False,
    )


def warn(text: str) -> None:
    """A sentence worth knowing, in yellow on standard error."""
    from rich.markup import escape

    notes().print(f"[yellow]{escape(text)}[/]")


def note(text: str) -> None:
    """A sentence about what is being done, on standard error."""
    from rich.markup import escape

    notes().print(f"[dim]{escape(text)}[/]")


def check_output(target: str, source: str | None, option: str = "--output") -> None:
    """Raises UserError, before the work, where the output cannot be written."""
    if target == STANDARD:
        return
    path = Path(target)
    if source not in (None, STANDARD) and path.exists() and path.samefile(source):
        raise UserError(_("{option} {file}: that is the input; name another file").format(option=option, file=target))
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UserError(_("{option} {file}: no file can be written there").format(option=option, file=target))


@contextmanager
def fetch_bars() -> Iterator[None]:
    """Within this block each fetched file has a progress bar; without a terminal, a line."""
    from paddle_tfm.data.fetch import observed

    if not notes().is_terminal:
        yield
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("  [cyan]{task.description}[/]"), BarColumn(bar_width=20), DownloadColumn()
    with Progress(*columns, TimeRemainingColumn(), console=notes(), transient=True) as progress:

        def begin(name: str, size: int | None):
            task = progress.add_task(name, total=size)
            return lambda done, total: progress.update(task, completed=done, total=total)

        with observed(begin):
            yield


class Stop:
    """Ctrl-C and SIGTERM ask to stop at the next step, with a checkpoint; a second Ctrl-C stops at once."""

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> Stop:
        self.before = {number: signal.signal(number, self._request) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def __call__(self) -> bool:
        return self.requested

    def _request(self, number: int, frame: object) -> None:
        if self.requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.requested = True
        notes().print(_("\n[yellow]Stopping after this step, with a checkpoint …[/] (Ctrl-C again: at once)"))


def complete_override(context: click.Context, parameter: click.Parameter, incomplete: str):
    """Paths and values of the recipe's settings, for shell completion."""
    from paddle_tfm.cli import completion

    return completion.complete_override(context, parameter, incomplete)


def complete_recipe(context: click.Context, parameter: click.Parameter | None, incomplete: str):
    """Names of shipped recipes, then files."""
    from click.shell_completion import CompletionItem

    from paddle_tfm.recipe.reading import shipped

    names = [CompletionItem(name) for name in sorted(shipped()) if name.startswith(incomplete)]
    return [*names, CompletionItem(incomplete, type="file")]


recipe_argument = click.argument("recipe", metavar="RECIPE", shell_complete=complete_recipe)
