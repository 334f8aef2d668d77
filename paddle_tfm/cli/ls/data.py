"""`paddle-tfm ls data`: the datasets that recipes can name, and all about one."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paddle_tfm.cli.common import console, fetch_bars
from paddle_tfm.cli.tables import emit, print_table
from paddle_tfm.data import datasets
from paddle_tfm.data.fetch import in_words
from paddle_tfm.errors import RecipeError, UserError
from paddle_tfm.language import _
from paddle_tfm.protocols import SPLITS, Dataset, Example, RemoteFile
from paddle_tfm.registry import no_component
from paddle_tfm.tabular import Table, column
from paddle_tfm.units import plural

if TYPE_CHECKING:
    from paddle_tfm.components import Entry
    from paddle_tfm.options import Option
    from paddle_tfm.registry import Registry

WIDER = "on a wider terminal"
FIRST = 3  # pairs of each split that are shown


def list_datasets(registry: Registry, form: str | None) -> None:
    """A row a dataset. Size and state are those of the files that are needed without options."""
    rows = [_row(entry) for entry in registry if entry.kind == "dataset"]
    columns = [
        column("name", style="cyan"),
        column("summary", "what it is", importance=80, prose=True),
        column("bytes", "size", in_words, importance=60, right=True),
        column("state"),
        column("licence", importance=40, prose=True),
    ]
    emit(Table(columns, rows, f"Datasets in {datasets.root()}"), form, rows)


def show_dataset(registry: Registry, name: str, settings: Sequence[str], fetch: bool, form: str | None) -> None:
    """Facts and files of the dataset with these settings, how many pairs it has, and the first ones. `fetch`: missing
    files are fetched before."""
    dataset = _build(registry, name, settings)
    if fetch:
        with fetch_bars():
            datasets.ensure(dataset)
    entry = registry.entry("dataset", name)
    if form is not None:
        row = _facts(entry, dataset, dataset.files())
        emit(Table([column(key) for key in row], [row]), form, row)
        return
    _print_facts(name, entry.summary(), dataset, settings)
    files = dataset.files()
    if len(datasets.present(dataset, files)) < len(files):
        from rich.markup import escape

        again = escape(shlex.join(["paddle-tfm", "ls", "data", name, *settings, "--fetch"]))
        console().print(f"Not all of its files are on disk. Fetch them: [bold]{again}[/]", soft_wrap=True)
        return
    _print_texts(dataset)


def _build(registry: Registry, name: str, settings: Sequence[str]) -> Dataset:
    """The dataset with these options, which are read and checked as in a recipe."""
    from paddle_tfm.recipe import yaml_lines

    _load_class(registry.entry("dataset", name))
    options = {}
    for setting in settings:
        option, equals, text = setting.partition("=")
        if not equals or option in ("", "name"):
            raise UserError(_("{name}: '{setting}' must be option=value").format(name=name, setting=setting))
        options[option] = yaml_lines.value(text)
    try:
        return registry.build("dataset", {"name": name, **options}, name)
    except RecipeError as error:
        raise UserError("\n".join(f"{problem.path}: {problem.message}" for problem in error.problems)) from error


def _load_class(entry: Entry) -> type[Dataset]:
    """The class of a registered dataset. Raises UserError: it cannot be loaded, or is no `Dataset`."""
    cls = entry.load()
    if getattr(cls, "kind", None) != "dataset":
        raise UserError(no_component("dataset", entry.name, cls, entry.provider.source))
    return cls


def _row(entry: Entry) -> dict[str, Any]:
    """A row of the list, also of a dataset that cannot be loaded."""
    try:
        cls = _load_class(entry)
        # without options; the whole catalogue of a dataset that requires one
        files = cls.catalogue() if any(option.required for option in _options(cls).values()) else cls().files()
    except UserError as error:
        row = {"name": entry.name, "summary": entry.summary(), "plugin": entry.provider.plugin}
        return {**row, "bytes": None, "state": f"broken: {error}", "licence": "", "home": "", "citation": ""}
    return _facts(entry, cls, files)


def _facts(entry: Entry, dataset: Dataset | type[Dataset], files: Sequence[RemoteFile]) -> dict[str, Any]:
    """What programs get of a dataset of which these files are needed."""
    num_present = len(datasets.present(dataset, files))
    sizes = [file.size for file in files]
    return {
        "name": entry.name,
        "summary": entry.summary(),
        "plugin": entry.provider.plugin,
        "bytes": None if None in sizes else sum(sizes),
        "state": _state(num_present, len(files)),
        "folder": str(datasets.folder(dataset)),
        "files": {"needed": len(files), "present": num_present, "all": len(dataset.catalogue())},
        "home": dataset.home,
        "licence": dataset.licence,
        "citation": dataset.citation,
    }


def _state(num_present: int, num_needed: int) -> str:
    if num_present == num_needed:
        return "present"
    return f"partly, {num_present} of {num_needed} files" if num_present else "absent"


def _options(cls: type) -> Mapping[str, Option]:
    """Those of a dataset's constructor. (A mere `type`, as mypy holds no `type[Dataset]` for hashable.)"""
    from paddle_tfm.options import parameters

    return parameters(cls)


def _print_facts(name: str, summary: str, dataset: Dataset, settings: Sequence[str]) -> None:
    """Home, licence, citation, options and folder of a dataset, and its files."""
    from rich.markup import escape

    defaults = {key: _as_written(option.default) for key, option in _options(type(dataset)).items()}
    options = {**defaults, **dict(setting.split("=", 1) for setting in settings)}
    console().print(f"[bold cyan]{escape(name)}[/]  {escape(summary)}\n")
    for heading, fact in (
        ("home", dataset.home),
        ("licence", dataset.licence),
        ("cite", dataset.citation),
        ("options", "  ".join(f"{key}={value}" for key, value in options.items()) or "none"),
        ("folder", str(datasets.folder(dataset))),
    ):
        console().print(f"[dim]{heading:<8}[/] {escape(fact)}", soft_wrap=True)
    files, pins = dataset.files(), datasets.first_hashes(dataset)
    on_disk = {file.name for file in datasets.present(dataset, files)}
    rows = [
        {
            "name": file.name,
            "size": in_words(file.size),
            "state": "present" if file.name in on_disk else "absent",
            "SHA-256": _hash(file, pins),
        }
        for file in files
    ]
    columns = [
        column("name", style="cyan"),
        column("size", importance=60, right=True),
        column("state"),
        column("SHA-256", importance=20),
    ]
    console().print()
    print_table(Table(columns, rows, "Files"), WIDER)


def _as_written(value: object) -> str:
    """An option's value as one writes it on a command line."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _hash(file: RemoteFile, pins: dict[str, str]) -> str:
    if file.sha256 is not None:
        return f"{file.sha256[:12]}…"
    return f"{pins[file.name][:12]}…, pinned at first use" if file.name in pins else "not pinned before first use"


def _print_texts(dataset: Dataset) -> None:
    """How many pairs each split has, and the first ones."""
    from rich.markup import escape

    for split in SPLITS:
        first, number = list[Example](), 0
        for number, example in enumerate(datasets.examples(dataset, split), 1):
            if number <= FIRST:
                first.append(example)
        console().print(f"\n[cyan]{split}[/]  {plural(number, 'pair')}")
        for example in first:
            console().print(f"  {escape(example.source)}  [dim]→[/]  {escape(example.target)}", soft_wrap=True)
