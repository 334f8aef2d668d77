"""Pairs of texts: a dataset by name, your own files, or a few in the recipe."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Any

from paddle_tfm.data import datasets
from paddle_tfm.data.filters import Filtering, Filters
from paddle_tfm.data.pairs import Files, Pair, pairs, share
from paddle_tfm.errors import UserError
from paddle_tfm.language import _, enumerated
from paddle_tfm.protocols import Dataset, Example, Task


class Parallel(Task):
    """Pairs of texts: `dataset`, a corpus by name; `train`, `valid`, `test`, your own files; or `pairs` in the recipe.

    `dataset` is ``multi30k`` or ``{name: multi30k, source: de, target: en}``; `paddle-tfm ls data` lists them.

    A split of your own is two files, ``[sources.en, targets.de]``, line by line; or one of pairs, in which `columns`
    say where source and target stand:

    - a table, TABs between its cells: numbers from 0 (default [0, 1]), or names in its first line, which is then none
      of pairs (`header: true` says so with numbers);
    - ``.csv``: the same; `delimiter` is a TAB, ``;``, ``,`` or ``|`` by what fits its first lines, and cells may stand
      in quotation marks (`quoted`, of any table, says whether);
    - ``.jsonl``, ``.json``: an object a line, or a list of them; keys (default [source, target]; ``translation.en``
      goes deeper);
    - TMX: languages (default: the two of its first unit); XLIFF, which has a source and a target: none.

    A test may have several references, as many for each source: a file for each, ``test: [a.en, r0.de, r1.de]``, or a
    column for each, ``test: {files: a.tsv, columns: [0, 1, 2]}`` (``[source, references.0, references.1]`` of a list in
    JSON). So may `valid`; `train` has one target a source.

    Files are plain, or packed by gzip, bzip2, xz, zstd (the extra [zstd]) or zip (``FILE.zip/NAME`` where it holds
    several). They are UTF-8, or what a byte order mark says; `encoding` names another: gb18030, latin-1, utf-16-le.
    Paths are relative to the current folder. Files are read as a stream, a few times over. Pairs that are empty on both
    sides are skipped; those that are on one are refused, or with `drop_empty` dropped and counted.

    Files may have options of their own, as above; `train` may be a list of such, each with how often its pairs stand in
    an epoch: ``[{files: [a.en, a.de], ratio: 3}, {files: b.csv, columns: [en, de], encoding: utf-16, ratio: 0.5}]``.

    `valid` and `test` may also be numbers: 500 holds out that many pairs of `train`, 0.05 that share of them, chosen by
    a hash of the text on the file's source side, so that equal sources stay together (which a number may bring a few
    pairs more or fewer for). If both are, both are numbers of pairs or both are shares.

    `filters` leaves pairs out of the training split, and of no other: ``{}`` what is usual, ``{ratio: 4, letters:
    null}`` what it says. `length` (100): with a side of more words, or characters of a script without spaces; `ratio`
    (3): whose longer side has more than so many times the words of the other; `letters` (0.5): with a side of which a
    smaller share are letters, spaces aside; `overlap`: whose source or target stands in `valid` or `test`;
    `duplicates`: that were there before, though `ratio` of a file still repeats it. `check` and results.json count
    each.

    `pairs`, a list of [source, target], serves as all three splits, for corpora that are to be learned by heart.
    `reverse` swaps source and target, of several references the first.
    """

    expected_failures = {
        "splits_disjoint": "files, pairs and corpora are read as they are: a source that two of them hold is in two "
        "splits (but not one that is held out of `train`)"
    }

    def __init__(
        self,
        train: str | list[str] | Files | list[Files] | None = None,
        valid: str | list[str] | Files | int | float | None = None,
        test: str | list[str] | Files | int | float | None = None,
        columns: list[int] | list[str] | None = None,
        reverse: bool = False,
        pairs: list[list[str]] | None = None,
        dataset: Dataset | None = None,
        encoding: str | None = None,
        delimiter: str | None = None,
        header: bool | None = None,
        quoted: bool | None = None,
        drop_empty: bool = False,
        filters: Filters | None = None,
    ):
        form = {"columns": columns, "encoding": encoding, "delimiter": delimiter, "header": header, "quoted": quoted}
        options = {"dataset": dataset, "pairs": pairs, "train": train, "valid": valid, "test": test, **form}
        _check_origin([option for option, value in options.items() if value is not None])
        self.dataset, self.pairs, self.reverse = dataset, pairs, reverse
        self._dropped: dict[str, int] | None = {} if drop_empty else None
        splits = {"train": train, "valid": valid, "test": test}
        self.held_out = {split: number for split, number in splits.items() if isinstance(number, (int, float))}
        _check_held_out(self.held_out)
        self._by_shares = any(isinstance(number, float) for number in self.held_out.values())
        if pairs is not None:
            _check_pairs(pairs)
        if filters is not None:
            if pairs is not None:
                raise ValueError(_("`filters` is of a corpus; leave it out where `pairs` are the whole of it"))
            filters.require_sound()
        self.filters = filters
        self._filtering: Filtering | None = None
        splits |= dict.fromkeys(self.held_out, train)
        self.files = {split: _several(files, split, form) for split, files in splits.items()}
        self._remarks: list[str] = []

    def examples(self, split: str) -> Iterator[Example]:
        if split == "train" and self.filters is not None:
            self._filtering = Filtering(self.filters, self._held_out_pairs)
        if self.dataset is not None:
            examples = datasets.examples(self.dataset, split)
            if split == "train" and self._filtering is not None:
                of_dataset = self._filtering.kept((each.source, each.target) for each in examples)
                examples = (Example(*pair) for pair in self._require_pairs(of_dataset, split))
        else:
            texts = self._read(split) if self.pairs is None else self.pairs
            examples = (Example(source, target, others=(*others,)) for source, target, *others in texts)
        return (Example(each.target, each.source) for each in examples) if self.reverse else iter(examples)

    def read_head(self, split: str) -> None:
        for files in [] if split in self.held_out else self.files[split]:
            if next(pairs(files, self._dropped), None) is None:
                raise UserError(_no_pair(files, split))

    def remarks(self) -> list[str]:
        return self._remarks

    def dropped(self) -> dict[str, int]:
        empty = {"drop_empty=true": sum(self._dropped.values())} if self._dropped else {}
        return empty if self._filtering is None else empty | self._filtering.counts()

    def _held_out_pairs(self) -> Iterator[Pair]:
        for split in ("valid", "test"):
            if self.dataset is None:
                yield from self._read(split)
            else:
                yield from ((each.source, each.target) for each in datasets.examples(self.dataset, split))

    def _read(self, split: str) -> Iterable[Pair]:
        files = self.files[split]
        if not files and split == "test":
            return []  # nothing to be scored at the end
        if not files:
            text = _("task 'parallel' has no file for the split '{split}': give it the option `{split}`{or_number}")
            or_number = _(", a file or how many pairs of `train` to hold out") if split == "valid" else ""
            raise UserError(text.format(split=split, or_number=or_number))
        once = split in self.held_out  # what is held out, is held out once
        read = self._of_training if split == "train" else self._pairs
        texts = chain.from_iterable(read(each) if once else each.repeated(read) for each in files)
        if once:
            texts = (pair for pair in texts if self._split_of(pair[0]) == split)
        return self._require_pairs(texts, split)

    def _of_training(self, files: Files) -> Iterator[Pair]:
        texts = self._pairs(files)
        if self.held_out:
            texts = (pair for pair in texts if self._split_of(pair[0]) == "train")
        return texts if self._filtering is None else self._filtering.kept(texts, self.files["train"].index(files))

    def _pairs(self, files: Files) -> Iterator[Pair]:
        return pairs(files, self._dropped, self._remarks.append)

    def _require_pairs(self, texts: Iterable[Pair], split: str) -> Iterator[Pair]:
        pair = None
        for pair in texts:
            yield pair
        if pair is None:
            clause = ""
            if split in self.held_out:
                clause = _(" that `{split}: {number}` would hold out").format(split=split, number=self.held_out[split])
            elif split == "train" and self.held_out:
                clause = _(" beside what {held_out} holds out").format(held_out=self._as_written())
            if dropped := self.dropped() if split == "train" else {}:
                clause = _(" that is left ({dropped})").format(dropped=enumerated(dropped))
            raise UserError(_no_pair(_names(self.files[split]) or type(self.dataset).__name__, split, clause))

    def _as_written(self) -> str:
        return enumerated(f"`{split}: {number}`" for split, number in self.held_out.items())

    def _split_of(self, source: str) -> str:
        """The split to which the pairs of `train`'s files with this source belong."""
        if not self._by_shares:
            return self._held_out.get(source, "train")
        place, end = share(source), 0.0
        for split, number in self.held_out.items():
            end += number
            if place <= end:
                return split
        return "train"

    @cached_property
    def _held_out(self) -> dict[str, str]:
        """The split of each source that is held out: those of so many pairs whose hashes are the least."""
        number = sum(self.held_out.values())
        sources = (source for files in self.files["train"] for source, _ in pairs(files, self._dropped))
        least = heapq.nsmallest(number + 1, ((share(source), source) for source in sources))
        if len(least) <= number:
            text = _("{files}: {number} pairs, of which {held_out} leaves none to train on")
            files = _names(self.files["train"])
            raise UserError(text.format(files=files, number=len(least), held_out=self._as_written()))
        of_source: dict[str, str] = {}
        splits = chain.from_iterable([split] * number for split, number in self.held_out.items())
        for hashed, split in zip(least, splits):
            of_source.setdefault(hashed[1], split)
        return of_source


def _several(files: str | list[str] | Files | list[Files] | None, split: str, form: dict[str, Any]) -> list[Files]:
    """The files of a split, read as `form` says where they do not say it themselves."""
    if files is None:
        return []
    listed = files if isinstance(files, list) and files and isinstance(files[0], Files) else [files]
    several = [each if isinstance(each, Files) else Files(each) for each in listed]
    for number, each in enumerate(several):
        several[number] = replace(each, **{key: own for key, own in form.items() if getattr(each, key) is None})
        several[number].require_sound(split)
    return several


def _names(several: list[Files]) -> str:
    return _(", ").join(map(str, several))


def _no_pair(files: object, split: str, clause: str = "") -> str:
    text = _("{files}: no pair of texts in it{clause}, but the split '{split}' needs one")
    return text.format(files=files, clause=clause, split=split)


def _check_origin(options: list[str]) -> None:
    """Exactly one of `dataset`, `pairs` and `train`."""
    if not {"dataset", "pairs", "train"} & {*options}:
        raise ValueError(
            _(
                "one of these must say where the pairs come from: `dataset`, a name of `paddle-tfm ls data`; `train`, "
                "a file or [file of sources, file of targets]; `pairs`, a list of [source, target]"
            )
        )
    if options[0] in ("dataset", "pairs") and len(options) > 1:
        text = _("`{option}` must stand alone, but `{other}` is given too")
        raise ValueError(text.format(option=options[0], other=options[1]))


def _check_held_out(held_out: Mapping[str, int | float]) -> None:
    for split, number in held_out.items():
        if isinstance(number, float) and not 0 < number < 1:
            text = _("`{split}` must be a share of `train` between 0 and 1, but is {number}")
            raise ValueError(text.format(split=split, number=number))
        if number < 1 and not isinstance(number, float):
            text = _("`{split}` must be a file, a share, or a number of pairs from 1 on, but is {number}")
            raise ValueError(text.format(split=split, number=number))
    if len({type(number) for number in held_out.values()}) > 1:
        text = _("`valid` and `test` must both be numbers of pairs, or both shares, but are {valid} and {test}")
        raise ValueError(text.format(**held_out))
    if sum(number for number in held_out.values() if isinstance(number, float)) >= 1:
        text = _("`valid` and `test` must leave a share of `train`, but are {valid} and {test}")
        raise ValueError(text.format(**held_out))


def _check_pairs(pairs: list[list[str]]) -> None:
    if not pairs:
        raise ValueError(_("`pairs` must hold at least one pair"))
    for number, pair in enumerate(pairs, 1):
        if len(pair) != 2 or not all(text.strip() for text in pair):
            sentence = _("`pairs` must hold a source and a target each, but number {number} is {pair}")
            raise ValueError(sentence.format(number=number, pair=pair))
