"""`paddle-tfm data`: the datasets that recipes can name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from paddle_tfm.cli.common import console, count, create_registry, notes, plugin_option, print_table
from paddle_tfm.cli.data_facts import print_facts, print_lengths, print_pairs
from paddle_tfm.errors import UserError, unknown

if TYPE_CHECKING:
    from paddle_tfm.protocols import Dataset, RemoteFile


def complete_name(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of datasets, for shell completion."""
    return [name for name in create_registry().names("dataset") if name.startswith(incomplete)]


def complete_option(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Options of the dataset that is named, for shell completion."""
    from paddle_tfm.registry import parameters

    try:
        options = parameters(create_registry().entry("dataset", context.params.get("name") or "").load())
    except UserError:
        return []
    return [f"{option}=" for option in options if option.startswith(incomplete)]


name_argument = click.argument("name", shell_complete=complete_name)
options_argument = click.argument("options", nargs=-1, metavar="[option=value]...", shell_complete=complete_option)


@click.group(name="data")
def command() -> None:
    """List, fetch and look at datasets: corpora that a recipe names, as in `task: {name: parallel, dataset: multi30k}`.

    Their files lie in the folder that the environment variable PADDLE_TFM_DATA names, by default one in your cache folder.
    `paddle-tfm run` fetches what a recipe needs by itself.

    \b
    Examples:
      paddle-tfm data ls
      paddle-tfm data show multi30k
      paddle-tfm data fetch multi30k source=en target=fr
    """


@command.command(name="ls")
@plugin_option
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
def ls(plugins, as_json) -> None:
    """List datasets: what each is, how large, whether its files are here, and its licence.

    Size and state are those of the files that are needed without options.

    \b
    Examples:
      paddle-tfm data ls
      paddle-tfm data ls --json
    """
    registry = create_registry(plugins)
    rows = [_row(entry) for entry in registry if entry.kind == "dataset"]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=1))
        return
    from paddle_tfm.data.cache import root
    from paddle_tfm.data.fetch import in_words

    shown = [[row["name"], row["summary"], in_words(row["bytes"]), row["state"], row["licence"]] for row in rows]
    print_table(f"Datasets in {root()}", ["name", "what it is", "size", "state", "licence"], shown)


@command.command(name="fetch")
@name_argument
@options_argument
@plugin_option
@click.option("--all", "everything", is_flag=True, help="All files of the dataset, not only those of these options.")
def fetch(name, options, plugins, everything) -> None:
    """Fetch the files of dataset NAME that the options need, and check them.

    A fetch that was interrupted goes on where it stopped. `paddle-tfm data show NAME` lists the options.

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
    told = "all were here already" if before == len(files) else f"{len(files) - before} fetched"
    console().print(f"[green]{escape(name)}[/]: {count(len(files), 'file')} in {escape(str(folder(dataset)))}, {told}")


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
    from paddle_tfm.data.cache import present
    from paddle_tfm.protocols import SPLITS

    if split not in SPLITS:
        raise UserError(f"--split: {unknown('split', split, SPLITS)}")
    registry = create_registry(plugins)
    dataset = _build(registry, name, options)
    print_facts(name, registry.entry("dataset", name).summary(), dataset, options)
    files = dataset.files()
    if len(present(dataset, files)) < len(files):
        again = " ".join(["paddle-tfm data fetch", name, *options])
        console().print(f"Not all of its files are here. Fetch them: [bold]{again}[/]", soft_wrap=True)
        return
    print_lengths(dataset)
    print_pairs(dataset, split, number)


@contextmanager
def bars() -> Iterator[None]:
    """Within this block a file that is fetched has a progress bar; a line where there is no terminal."""
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
    """The dataset with these options. `registry.build` would import Paddle, which nothing here needs."""
    from pydantic import TypeAdapter, ValidationError

    from paddle_tfm.recipe import yaml_lines
    from paddle_tfm.registry import parameters

    cls = _load(registry.entry("dataset", name))
    known, given = parameters(cls), {}
    for setting in settings:
        option, equals, text = setting.partition("=")
        if not equals or option not in known:
            asked = unknown("option", option, known) if equals else f"'{setting}' must be option=value"
            raise UserError(f"{name}: {asked}")
        try:
            given[option] = TypeAdapter(known[option].annotation).validate_python(yaml_lines.value(text), strict=True)
        except ValidationError as error:
            reason = error.errors()[0]["msg"].removeprefix("Input should be ")
            raise UserError(f"{name}: `{option}` must be {reason}, but is '{text}'") from error
    if lacking := [option for option in known if known[option].required and option not in given]:
        raise UserError(f"{name} needs the option '{lacking[0]}': add {lacking[0]}=…")
    try:
        return cls(**given)
    except ValueError as error:
        raise UserError(f"{name}: {error}") from error


def _load(entry) -> type[Dataset]:
    from paddle_tfm.protocols import Dataset

    cls = entry.load()
    if not issubclass(cls, Dataset):
        raise UserError(f"'{entry.name}' is no dataset: its class must subclass paddle_tfm.protocols.Dataset")
    return cls


def _row(entry) -> dict:
    """What `ls` says of a dataset, also of one that cannot be loaded."""
    from paddle_tfm.data.cache import folder, present

    row = {"name": entry.name, "summary": entry.summary(), "plugin": entry.provider.plugin}
    try:
        cls = _load(entry)
        files = _needed(cls)
    except UserError as error:
        return {**row, "bytes": None, "state": f"broken: {error}", "licence": "", "home": "", "citation": ""}
    here = len(present(cls, files))
    sizes = [file.size for file in files]
    return {
        **row,
        "bytes": None if None in sizes else sum(sizes),
        "state": "present" if here == len(files) else f"partly, {here} of {len(files)} files" if here else "absent",
        "folder": str(folder(cls)),
        "files": {"needed": len(files), "here": here, "all": len(cls.catalogue())},
        "home": cls.home,
        "licence": cls.licence,
        "citation": cls.citation,
    }


def _needed(cls: type[Dataset]) -> Sequence[RemoteFile]:
    """The files that are needed without options; all of them if it needs an option."""
    from paddle_tfm.registry import parameters

    return cls.catalogue() if any(option.required for option in parameters(cls).values()) else cls().files()
