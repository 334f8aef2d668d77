"""Pairs of texts: a dataset by name, your own files, or a few in the recipe."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from functools import cached_property

from paddle_tfm.data import datasets
from paddle_tfm.data.pairs import Pair, json_lines, share, side_by_side, table
from paddle_tfm.errors import UserError, unknown
from paddle_tfm.protocols import SPLITS, Dataset, Example, Task

Files = str | list[str]  # one file of pairs, or one of sources and one of targets
JSON = (".jsonl", ".jsonl.gz")


class Parallel(Task):
    """Pairs of texts: `dataset`, a corpus by name; `train`, `valid`, `test`, your own files; or `pairs` in the recipe.

    `dataset` is ``multi30k`` or ``{name: multi30k, source: de, target: en}``; `paddle-tfm ls data` lists them.

    A split of your own is one file or two: ``file.tsv``, of which `columns` (counted from 0; default [0, 1]) say where
    source and target stand; ``file.jsonl``, a JSON object a line, of which `columns` are the keys (default [source,
    target]; ``translation.en`` goes deeper); or ``[sources.en, targets.de]``, line by line. Files are UTF-8, also as
    .gz; paths are relative to the current folder. They are read as a stream, a few times over. Lines that are blank on
    both sides are skipped.

    `valid` may also be a number: 500 holds out that many pairs of `train`, 0.05 that share of them, chosen by a hash of
    the text on the file's source side, so that equal sources stay together (a number may bring a few pairs more for
    it).

    `pairs`, a list of [source, target], serves as all three splits, for corpora that are to be learned by heart.
    `reverse` swaps source and target.
    """

    expected_failures = {
        "splits_disjoint": "files, pairs and corpora are read as they are: a source that two of them hold is in two "
        "splits (but not one that `valid` holds out)"
    }

    def __init__(
        self,
        train: Files | None = None,
        valid: Files | int | float | None = None,
        test: Files | None = None,
        columns: list[int] | list[str] | None = None,
        reverse: bool = False,
        pairs: list[list[str]] | None = None,
        dataset: Dataset | None = None,
    ):
        options = {
            "dataset": dataset, "pairs": pairs, "train": train, "valid": valid, "test": test, "columns": columns
        }  # fmt: skip
        _check_origin([option for option, value in options.items() if value is not None])
        self.dataset, self.pairs, self.reverse = dataset, pairs, reverse
        self.files: dict[str, Files | None] = {"train": train, "valid": valid, "test": test}
        self.columns = columns
        self.held_out = None if isinstance(valid, (str, list)) else valid
        if self.held_out is not None:
            _check_share(self.held_out)
            self.files["valid"] = train
        if pairs is not None:
            _check_pairs(pairs)
        for split, files in self.files.items():
            _check_files(split, files, columns)

    def examples(self, split: str) -> Iterator[Example]:
        if split not in SPLITS:
            raise UserError(unknown("split", split, SPLITS))
        if self.dataset is not None:
            examples = datasets.examples(self.dataset, split)
        else:
            examples = (Example(*pair) for pair in (self._read(split) if self.pairs is None else self.pairs))
        return (Example(each.target, each.source) for each in examples) if self.reverse else iter(examples)

    def read_head(self, split: str) -> None:
        files = self.files[split]
        if files is not None and next(_pairs(files, self.columns), None) is None:
            raise UserError(f"{_file_names(files)}: no pair of texts in it, but the split '{split}' needs one")

    def _read(self, split: str) -> Iterable[Pair]:
        files = self.files[split]
        if files is None and split == "test":
            return []  # nothing to be scored at the end
        if files is None:
            raise UserError(
                f"task 'parallel' has no file for the split '{split}': give it the option `{split}`"
                + (", a file or how many pairs of `train` to hold out" if split == "valid" else "")
            )
        pairs = _pairs(files, self.columns)
        if self.held_out is not None and split != "test":
            pairs = (pair for pair in pairs if (share(pair[0]) <= self._threshold) == (split == "valid"))
        return self._require_pairs(pairs, split)

    def _require_pairs(self, pairs: Iterable[Pair], split: str) -> Iterator[Pair]:
        pair = None
        for pair in pairs:
            yield pair
        if pair is None:
            clauses = {"train": " beside what `valid: {}` holds out", "valid": " that `valid: {}` would hold out"}
            clause = clauses.get(split, "").format(self.held_out) if self.held_out else ""
            files = _file_names(self.files[split])
            raise UserError(f"{files}: no pair of texts in it{clause}, but the split '{split}' needs one")

    @cached_property
    def _threshold(self) -> float:
        """Sources whose hash is at most this are held out."""
        if isinstance(self.held_out, float):
            return self.held_out
        hashes = (share(source) for source, _ in _pairs(self.files["train"], self.columns))
        smallest = heapq.nsmallest(self.held_out + 1, hashes)
        if len(smallest) <= self.held_out:
            files = _file_names(self.files["train"])
            raise UserError(
                f"{files}: {len(smallest)} pairs, of which `valid: {self.held_out}` leaves none to train on"
            )
        return smallest[self.held_out - 1]


def _pairs(files: Files, columns: list[int] | list[str] | None) -> Iterator[Pair]:
    if isinstance(files, list):
        return side_by_side(*files)
    if files.endswith(JSON):
        return json_lines(files, columns or ("source", "target"))
    return table(files, columns or (0, 1))


def _file_names(files: Files) -> str:
    return files if isinstance(files, str) else " and ".join(files)


def _check_origin(options: list[str]) -> None:
    """Exactly one of `dataset`, `pairs` and `train`."""
    if not {"dataset", "pairs", "train"} & {*options}:
        raise ValueError(
            "one of these must say where the pairs come from: `dataset`, a name of `paddle-tfm ls data`; `train`, a "
            "file or [file of sources, file of targets]; `pairs`, a list of [source, target]"
        )
    if options[0] in ("dataset", "pairs") and len(options) > 1:
        raise ValueError(f"`{options[0]}` must stand alone, but `{options[1]}` is given too")


def _check_share(held_out: int | float) -> None:
    if isinstance(held_out, float) and not 0 < held_out < 1:
        raise ValueError(f"`valid` must be a share of `train` between 0 and 1, but is {held_out}")
    if held_out < 1 and not isinstance(held_out, float):
        raise ValueError(f"`valid` must be a file, a share, or a number of pairs from 1 on, but is {held_out}")


def _check_files(split: str, files: Files | None, columns: list[int] | list[str] | None) -> None:
    if isinstance(files, list) and len(files) != 2:
        raise ValueError(f"`{split}` must be one file or two, but has {len(files)}")
    if columns is None or not isinstance(files, str):
        return
    if files.endswith(JSON):
        if len(columns) != 2 or not all(isinstance(column, str) and column for column in columns):
            raise ValueError(f"`columns` must be two keys of {files}, those of source and target, but is {columns}")
    elif len(columns) != 2 or not all(isinstance(column, int) and column >= 0 for column in columns):
        raise ValueError(f"`columns` must be two numbers from 0 on, those of source and target, but is {columns}")


def _check_pairs(pairs: list[list[str]]) -> None:
    if not pairs:
        raise ValueError("`pairs` must hold at least one pair")
    for number, pair in enumerate(pairs, 1):
        if len(pair) != 2 or not all(text.strip() for text in pair):
            raise ValueError(f"`pairs` must hold a source and a target each, but number {number} is {pair}")
