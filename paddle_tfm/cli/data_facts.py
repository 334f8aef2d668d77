"""What `paddle-tfm data` prints of a dataset: its facts, its files, how long its texts are, its first pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from paddle_tfm.cli.common import console
from paddle_tfm.cli.tables import print_table
from paddle_tfm.data import datasets
from paddle_tfm.data.fetch import in_words
from paddle_tfm.errors import UserError
from paddle_tfm.protocols import SPLITS, Dataset, RemoteFile
from paddle_tfm.tabular import Table, column

if TYPE_CHECKING:
    from paddle_tfm.options import Option

WIDER = "on a wider terminal"


def load_class(entry) -> type[Dataset]:
    """The class of a registered dataset.

    Raises:
        UserError: it cannot be loaded, or is no `Dataset`.
    """
    cls = entry.load()
    if not issubclass(cls, Dataset):
        raise UserError(f"'{entry.name}' is no dataset: its class must subclass paddle_tfm.protocols.Dataset")
    return cls


def facts_row(entry) -> dict:
    """A row of `ls`, also of a dataset that cannot be loaded."""
    from paddle_tfm.data.cache import folder, present

    row = {"name": entry.name, "summary": entry.summary(), "plugin": entry.provider.plugin}
    try:
        cls = load_class(entry)
        files = _needed(cls)
    except UserError as error:
        return {**row, "bytes": None, "state": f"broken: {error}", "licence": "", "home": "", "citation": ""}
    num_present = len(present(cls, files))
    sizes = [file.size for file in files]
    return {
        **row,
        "bytes": None if None in sizes else sum(sizes),
        "state": _state(num_present, len(files)),
        "folder": str(folder(cls)),
        "files": {"needed": len(files), "present": num_present, "all": len(cls.catalogue())},
        "home": cls.home,
        "licence": cls.licence,
        "citation": cls.citation,
    }


def _state(num_present: int, num_needed: int) -> str:
    if num_present == num_needed:
        return "present"
    return f"partly, {num_present} of {num_needed} files" if num_present else "absent"


def _needed(cls: type[Dataset]) -> Sequence[RemoteFile]:
    """The files that are needed without options; the whole catalogue of a dataset that requires an option."""
    return cls.catalogue() if any(option.required for option in _options(cls).values()) else cls().files()


def _options(cls: type) -> Mapping[str, Option]:
    """Those of a dataset's constructor. (A mere `type`, as mypy holds no `type[Dataset]` for hashable.)"""
    from paddle_tfm.options import parameters

    return parameters(cls)


def print_facts(name: str, summary: str, dataset: Dataset, settings: Sequence[str]) -> None:
    """Home, licence, citation, options and folder of a dataset, and its files."""
    from rich.markup import escape

    from paddle_tfm.data.cache import first_hashes, folder, present

    defaults = {key: _as_written(option.default) for key, option in _options(type(dataset)).items()}
    options = {**defaults, **dict(setting.split("=", 1) for setting in settings)}
    console().print(f"[bold cyan]{escape(name)}[/]  {escape(summary)}\n")
    for heading, fact in (
        ("home", dataset.home),
        ("licence", dataset.licence),
        ("cite", dataset.citation),
        ("options", "  ".join(f"{key}={value}" for key, value in options.items()) or "none"),
        ("folder", str(folder(dataset))),
    ):
        console().print(f"[dim]{heading:<8}[/] {escape(fact)}", soft_wrap=True)
    files, pins = dataset.files(), first_hashes(dataset)
    on_disk = {file.name for file in present(dataset, files)}
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


def print_lengths(dataset: Dataset) -> None:
    """Pairs of each split, and how long their sides are in words and in characters."""
    rows = []
    for split in SPLITS:
        words, letters = _histograms(), _histograms()
        for example in datasets.examples(dataset, split):
            for side, text in enumerate((example.source, example.target)):
                words[side][len(text.split())] += 1
                letters[side][len(text)] += 1
        for side, name in enumerate(("source", "target")):
            pairs = f"{words[0].total():,}" if side == 0 else ""
            of_split = {"split": split if side == 0 else "", "pairs": pairs, "side": name}
            rows.append({**of_split, "words": _spread(words[side]), "characters": _spread(letters[side])})
    columns = [
        column("split", style="cyan"),
        column("pairs", importance=60, right=True),
        column("side"),
        column("words", "words: median, 95 %, longest", right=True),
        column("characters", "characters: median, 95 %, longest", importance=50, right=True),
    ]
    console().print()
    print_table(Table(columns, rows, "Lengths"), WIDER)


def _histograms() -> tuple[Counter[int], Counter[int]]:
    """Length → how many texts have it, for sources and for targets."""
    return Counter(), Counter()


def _spread(lengths: Counter[int]) -> str:
    """Median, 95th percentile and maximum of a histogram."""
    total, texts = sum(lengths.values()), 0
    quantiles: list[int] = []
    for length in sorted(lengths):
        texts += lengths[length]  # texts of at most this length
        while len(quantiles) < 2 and texts >= total * (0.5, 0.95)[len(quantiles)]:
            quantiles.append(length)
    return ", ".join(f"{length:,}" for length in [*quantiles, max(lengths)]) if lengths else ""


def print_pairs(dataset: Dataset, split: str, number: int) -> None:
    """The first pairs of a split."""
    from rich.markup import escape

    console().print()
    for example in islice(datasets.examples(dataset, split), number):
        console().print(f"{escape(example.source)}  [dim]→[/]  {escape(example.target)}", soft_wrap=True)
