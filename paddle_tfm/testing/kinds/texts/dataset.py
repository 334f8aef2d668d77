"""What holds for a dataset by itself, without a network: what it says of its files, and its splits where they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, zip_longest
from pathlib import PurePosixPath

from paddle_tfm.data import datasets
from paddle_tfm.protocols import SPLITS, Dataset, Example, RemoteFile
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.other_process import as_in_another_process
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Note, Passed, Result, Skip

MOST = 100_000  # examples of a split that are looked at


def _wrong_file(file: RemoteFile) -> str:
    """What is wrong with a file's entry; "" if nothing is."""
    path = PurePosixPath(file.name)
    if not file.name or path.is_absolute() or ".." in path.parts or "\\" in file.name:
        return "its name must be a path below the dataset's folder"
    if isinstance(file.urls, str) or not file.urls:
        return f"`urls` must be a tuple of addresses, but is {file.urls!r}"
    if wrong := [url for url in file.urls if not re.match(r"https?://[^/\s]+/\S", url)]:
        return f"{wrong[0]!r} is no address"
    if file.sha256 is not None and not re.fullmatch(r"[0-9a-f]{64}", file.sha256):
        return f"`sha256` must be 64 digits of 0-9 and a-f, but is {file.sha256!r}"
    if file.size is not None and file.size <= 0:
        return f"`size` must be a number of bytes, but is {file.size}"
    return ""


@check(
    "dataset",
    invariant="each file has a unique name below the folder, addresses, and a complete SHA-256 if any",
    consequence="a file is never fetched, is refused though correct, or is overwritten by another",
    hint="`catalogue`: `RemoteFile(name, (url, …), sha256, size)`; a comma after the only address",
)
def files_declared(subject: ComponentUnderTest) -> Result:
    declared = list(subject.cls.catalogue())
    for file in declared:
        if wrong := _wrong_file(file):
            return Failed(f"{file.name!r}: {wrong}")
    names = [file.name for file in declared]
    if twice := {name for name in names if names.count(name) > 1}:
        return Failed(f"{min(twice)!r} is declared twice")
    hashed = sum(file.sha256 is not None for file in declared)
    return Note(f"{len(declared)} files, {hashed} with a known SHA-256; the others are trusted at their first use")


@check(
    "dataset",
    invariant="files chosen by options are in the catalogue, and the same at every call",
    consequence="`ls data` knows other files than a training reads",
    hint="`files()` chooses among those of `catalogue()`; the object changes nothing of itself",
)
def files_in_catalogue(subject: ComponentUnderTest) -> Result:
    dataset = subject.build()
    files, declared = list(dataset.files()), list(subject.cls.catalogue())
    if list(dataset.files()) != files or list(subject.cls.catalogue()) != declared:
        return Failed("called twice, the files differ")
    if stray := [file.name for file in files if file not in declared]:
        return Failed(f"{stray[0]!r} is asked for, and not in the catalogue")
    return Passed()


@check(
    "dataset",
    invariant="its origin is declared (folder, home, licence and citation), and its docstring says what it is",
    consequence="two corpora in one folder; a report without the data's origin",
    hint="`folder`, `home`, `licence`, `citation`, the first line of the docstring",
)
def described(subject: ComponentUnderTest) -> Result:
    dataset: Dataset = subject.build()
    if subject.cls.catalogue() and not re.fullmatch(r"[\w.-]*\w[\w.-]*", dataset.folder):
        return Failed(f"`folder` must be the name of a folder, but is {dataset.folder!r}")
    others = [
        entry.name for entry in subject.registry
        if entry.kind == "dataset" and entry.name != subject.name and dataset.folder and not entry.wrong_on_purpose
        and (cls := entry.load()) is not subject.cls and cls.folder == dataset.folder
    ]  # fmt: skip
    if others:
        return Failed(f"its folder {dataset.folder!r} is also that of {others[0]}")
    for name in ("home", "licence", "citation") if subject.cls.catalogue() else ():
        if not str(getattr(dataset, name)).strip():
            return Failed(f"`{name}` is empty")
    if not (subject.cls.__doc__ or "").strip():
        return Failed("its docstring is empty")
    languages = dataset.languages
    if languages is not None and (len(languages) != 2 or not all(isinstance(each, str) and each for each in languages)):
        return Failed(f"`languages` must be those of source and target, but is {languages!r}")
    return Passed()


@check(
    "dataset",
    invariant="with its files on disk, each split holds pairs of texts, the same at every call and in every process",
    consequence="empty sentences reach the model; two runs learn from different data",
    hint="`read`: columns, the encoding, lines without text, what decides about a line's split (not `hash`, which is "
    "another in each process)",
)
def reads(subject: ComponentUnderTest) -> Result:
    dataset: Dataset = subject.build()
    files = dataset.files()
    missing = [file.name for file in files if file not in datasets.present(dataset, files)]
    if missing:
        return Skip(f"{missing[0]} is not here; `paddle-tfm ls data {subject.name} --fetch` fetches it")
    counts = {}
    for name in SPLITS:
        counts[name] = 0
        with as_in_another_process():
            others = list(_read(subject.build(), name))
        for one, other in zip_longest(_read(dataset, name), others):
            if one != other:
                return Failed(f"{name}: example {counts[name]} is {one}, and then {other}")
            if not isinstance(one, Example) or not (one.target.strip() and one.source.strip()):
                return Failed(f"{name}: example {counts[name]} must hold two texts, but is {one!r}"[:200])
            counts[name] += 1
    if not counts["train"]:
        return Failed("train has no example")
    return Note(", ".join(f"{name} {count:,}" for name, count in counts.items()))


def _read(dataset: Dataset, split: str) -> Iterator[Example]:
    return islice(datasets.examples(dataset, split), MOST)
