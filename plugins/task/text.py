"""Running text, for language models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from paddle_tfm.data import datasets
from paddle_tfm.data.lines import lines, require_encoding
from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.protocols import Dataset, Example, Excerpt, Task
from paddle_tfm.validators import positive

WORD_START = re.compile(r"(?<!\S)\S")
LAST_WORD = re.compile(r"\S*\Z")


class Text(Task):
    """Running text for decoder-only models: an empty source, and a text as target, whole or in blocks.

    The text is one side of a `dataset` (`side`: source | target), or files of your own, `train`, `valid` and `test`,
    relative to the current folder: plain, or packed as those of the task `parallel` may be; in UTF-8, or what a byte
    order mark or `encoding` says. `valid` may also be a number below 1: that share of `train`,
    its last lines. A line that equals the one before counts once, as in corpora where a sentence has several
    translations.

    Without `block`, each line is an example, which ends: the model learns where texts end. With it, the lines of a
    split are one text, cut into blocks of at most so many characters, which have no end. A block begins and ends
    between words, unless a word is longer than it (and where a language writes no spaces). In training, a block begins
    `stride` characters after the one before (null: where that one ended); in the other splits all characters are scored
    once. Line breaks and runs of spaces survive if the tokenizer keeps them (`{name: char, exact: true}`).
    """

    expected_failures = {
        "splits_disjoint": "running text is cut where its files end: a line that two of them hold is in two splits"
    }

    def __init__(
        self,
        dataset: Dataset | None = None,
        side: Literal["source", "target"] = "source",
        train: str | None = None,
        valid: str | float | None = None,
        test: str | None = None,
        block: int | None = None,
        stride: int | None = None,
        encoding: str | None = None,
    ):
        require_encoding(encoding)
        if (dataset is None) == (train is None):
            raise ValueError(_("either `dataset` or `train`, a file, must say where the text comes from"))
        if dataset is not None and (valid is not None or test is not None):
            raise ValueError(_("`dataset` has splits of its own: `valid` and `test` must be left out"))
        if train is not None and valid is None:
            raise ValueError(_("`valid` must be a file, or the share of `train` to hold out, for instance 0.1"))
        if isinstance(valid, float) and not 0 < valid < 1:
            raise ValueError(_("`valid` must be a file or a share between 0 and 1, but is {valid}").format(valid=valid))
        positive(block=block)
        if stride is not None and (block is None or not 0 < stride <= block):
            text = _("`stride` must be from 1 to `block`={block}, but is {stride}")
            raise ValueError(text.format(block=block, stride=stride))
        self.dataset, self.side, self.block, self.stride = dataset, side, block, stride
        self.encoding = encoding
        self.files = {"train": train, "valid": valid, "test": test}

    def examples(self, split: str) -> Iterator[Example]:
        texts = _without_repeats(self._lines(split))
        if self.block is None:
            return (Example("", text) for text in texts)
        stride = self.stride if split == "train" else None
        return (Excerpt("", block) for block in blocks(texts, self.block, stride))

    def read_head(self, split: str) -> None:
        if isinstance(file := self.files[split], str) and next(self._text(file), None) is None:
            text = _("{file}: no text in it, but the split '{split}' needs some")
            raise UserError(text.format(file=file, split=split))

    def _lines(self, split: str) -> Iterator[str]:
        """The lines of a split that hold text, without their ends."""
        if self.dataset is not None:
            return (getattr(example, self.side) for example in datasets.examples(self.dataset, split))
        file, share = self.files[split], self.files["valid"]
        if file is None:
            return iter(())  # nothing to be scored at the end
        if not isinstance(share, float) or split == "test":
            return self._text(file)
        train = self.files["train"]
        first = round((1 - share) * sum(1 for _ in self._text(train)))
        return (line for number, line in enumerate(self._text(train)) if (number >= first) == (split == "valid"))

    def _text(self, file: str) -> Iterator[str]:
        return (line.rstrip("\r\n") for line in lines(file, self.encoding) if line.strip())


def _without_repeats(texts: Iterable[str]) -> Iterator[str]:
    """Each text that differs from the one before."""
    before = None
    for text in texts:
        if text != before:
            yield text
        before = text


def blocks(texts: Iterable[str], size: int, stride: int | None = None) -> Iterator[str]:
    """The texts, each closed by a line break, as blocks of at most `size` characters, between words where that can be.
    Each begins `stride` characters after the one before or slightly later; without `stride`, where that one ended."""
    rest = ""
    for text in texts:
        rest += f"{text}\n"
        while len(rest) > size:
            end = _cut(rest, size)
            yield rest[:end]
            rest = rest[end if stride is None or stride >= end else _begin(rest, stride, end) :]
    if rest:
        yield rest


def _cut(text: str, size: int) -> int:
    """Where a block of at most `size` characters ends: before the word that it would cut, if another is before that."""
    if text[size].isspace():
        return size
    return len(text[:size]) - len(LAST_WORD.search(text[:size]).group()) or size


def _begin(text: str, least: int, most: int) -> int:
    """Where the next block begins: at the first word that begins at `least` or later, but at `most` at the latest."""
    match = WORD_START.search(text, least, most)
    return least if match is None else match.start()
