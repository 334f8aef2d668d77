"""What is learned from: examples, tasks and datasets. Plugins subclass `Task` and `Dataset`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

SPLITS = ("train", "valid", "test")


class Example(NamedTuple):
    """One pair of texts. `labels`, where a task has them, name the source (one) or each of its pieces (as many)."""

    source: str
    target: str
    labels: tuple[str, ...] = ()


class Task:
    """Pairs of texts in the splits train, valid and test. Options are the constructor's keyword parameters."""

    kind: ClassVar[str] = "task"

    def examples(self, split: str) -> Iterable[Example]:
        """The examples of a split, the same at every call and in the same order.

        Raises:
            UserError: the data cannot be read; with file and line.
        """
        raise NotImplementedError


class Dataset:
    """A named corpus: where its files live and how a split is read."""

    kind: ClassVar[str] = "dataset"

    def examples(self, split: str) -> Iterable[Example]:
        """The examples of a split."""
        raise NotImplementedError
