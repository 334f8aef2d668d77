"""`paddle-tfm data`: the datasets that recipes can name."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from paddle_tfm.cli.common import console, create_registry, notes, plugin_option
from paddle_tfm.cli.data_facts import facts_row, load_class, print_facts, print_lengths, print_pairs
from paddle_tfm.cli.tables import emit, table_options
from paddle_tfm.errors import RecipeError, UserError, unknown
from paddle_tfm.tabular import Table, column
from paddle_tfm.units import plural

if TYPE_CHECKING:
    from paddle_tfm.protocols import Dataset


def complete_name(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of datasets, for shell completion."""
    return [name for name in create_registry().names("dataset") if name.startswith(incomplete)]


def complete_option(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Options of the dataset on the command line, for shell completion."""
    from paddle_tfm.options import parameters

    try:
        options = parameters(create_registry().entry("dataset", context.params.get("name") or "").load())
    except UserError:
        return []
    return [f"{option}=" for option in options if option.startswith(incomplete)]


name_argument = click.argument("name", shell_complete=complete_name)
options_argument = click.argument("options", nargs=-1, metavar="[option=value]...", shell_complete=complete_option)


@click.group(name="data")
def command() -> None:
    """List, fetch and show datasets: corpora that a recipe names, as in `task: {name: parallel, dataset: multi30k}`.

    Their files lie in the folder of the environment variable PADDLE_TFM_DATA, by default one in your cache folder.
    `paddle-tfm run` fetches what a recipe needs by itself.

    \b
    Examples:
      paddle-tfm data ls
      paddle-tfm data show multi30k
      paddle-tfm data fetch multi30k source=en target=fr
    """


@command.command(name="ls")
@table_options
@plugin_option
def ls(plugins, form) -> None:
    """List datasets: what each is, how large, whether its files are on disk, and its licence.

    Size and state are those of the files that are needed without options.

    \b
    Examples:
      paddle-tfm data ls
      paddle-tfm data ls --json
    """
    registry = create_registry(plugins)
    rows = [facts_row(entry) for entry in registry if entry.kind == "dataset"]
    from paddle_tfm.data.cache import root
    from paddle_tfm.data.fetch import in_words

    columns = [
        column("name", style="cyan"),
        column("summary", "what it is", importance=80, prose=True),
        column("bytes", "size", in_words, importance=60, right=True),
        column("state"),
        column("licence", importance=40, prose=True),
    ]
    emit(Table(columns, rows, f"Datasets in {root()}"), form, rows)


@command.command(name="fetch")
@name_argument
@options_argument
@plugin_option
@click.option("--all", "everything", is_flag=True, help="All files of the dataset, not only those of these options.")
def fetch(name, options, plugins, everything) -> None:
    """Fetch the files of dataset NAME that the options need, and check them.

    An interrupted fetch resumes where it stopped. `paddle-tfm data show NAME` lists the options.

    \b
    Examples:
      paddle-tfm data fetch multi30k
      paddle-tfm data fetch sigmorphon2020-g2p language=kor
      paddle-tfm data fetch scan --all
    """
    from rich.markup import escape

    from paddle_tfm.data.cache import ensure, folder, present

    dataset = _build(create_registry(plugins), name, options)
    files = dataset.catalogue() if everything else dataset.files()
    before = len(present(dataset, files))
    with bars():
        ensure(dataset, files)
    change = "all on disk already" if before == len(files) else f"{len(files) - before} fetched"
    console().print(
        f"[green]{escape(name)}[/]: {plural(len(files), 'file')} in {escape(str(folder(dataset)))}, {change}"
    )


@command.command(name="show")
@name_argument
@options_argument
@plugin_option
@click.option("--split", default="train", help="The split whose pairs are shown: train, valid or test.")
@click.option("-n", "number", type=click.IntRange(min=0), default=5, help="How many pairs. Default: 5.")
def show(name, options, plugins, split, number) -> None:
    """Show dataset NAME: its home, licence and files, how many pairs and how long they are, and the first pairs.

    \b
    Examples:
      paddle-tfm data show tatoeba-en-zh
      paddle-tfm data show scan cutoff=26 --split test -n 3
    """
    from rich.markup import escape

    from paddle_tfm.data.cache import present
    from paddle_tfm.protocols import SPLITS

    if split not in SPLITS:
        raise UserError(f"--split: {unknown('split', split, SPLITS)}")
    registry = create_registry(plugins)
    dataset = _build(registry, name, options)
    print_facts(name, registry.entry("dataset", name).summary(), dataset, options)
    files = dataset.files()
    if len(present(dataset, files)) < len(files):
        again = escape(shlex.join(["paddle-tfm", "data", "fetch", name, *options]))
        console().print(f"Not all of its files are on disk. Fetch them: [bold]{again}[/]", soft_wrap=True)
        return
    print_lengths(dataset)
    print_pairs(dataset, split, number)


@contextmanager
def bars() -> Iterator[None]:
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


def _build(registry, name: str, settings: Sequence[str]) -> Dataset:
    """The dataset with these options, which are read and checked as in a recipe."""
    from paddle_tfm.recipe import yaml_lines

    load_class(registry.entry("dataset", name))
    options = {}
    for setting in settings:
        option, equals, text = setting.partition("=")
        if not equals or option in ("", "name"):
            raise UserError(f"{name}: '{setting}' must be option=value")
        options[option] = yaml_lines.value(text)
    try:
        return registry.build("dataset", {"name": name, **options}, name)
    except RecipeError as error:
        raise UserError("\n".join(f"{problem.path}: {problem.message}" for problem in error.problems)) from error
