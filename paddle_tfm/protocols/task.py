"""What is learned: pairs of texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from paddle_tfm.protocols.component import Component

SPLITS = ("train", "valid", "test")


class Example(NamedTuple):
    """One pair of texts. `labels`, where a task has them, name the source (one) or each of its pieces (as many)."""

    source: str
    target: str
    labels: tuple[str, ...] = ()
    ends = True  # whether the target ends here


class Excerpt(Example):
    """An example whose target is cut out of a longer text, and goes on: it gets no end token."""

    __slots__ = ()
    ends = False


class Task(Component):
    """Pairs of texts in the splits train, valid and test. Options are the constructor's keyword parameters."""

    kind: ClassVar[str] = "task"

    def examples(self, split: str) -> Iterable[Example]:
        """The examples of a split, the same at every call and in the same order.

        Raises:
            UserError: the data cannot be read; with file and line.
        """
        raise NotImplementedError
