"""What is learned: pairs of texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, NamedTuple

from paddle_tfm.protocols.component import Component

SPLITS = ("train", "valid", "test")


class Example(NamedTuple):
    """One pair of texts. `labels`, where a task has them, name the source (one) or each of its pieces (as many).
    `others` are references beside the target, as many in each example of a split; none in the training split."""

    source: str
    target: str
    labels: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def references(self) -> tuple[str, ...]:
        """The target and the others."""
        return (self.target, *self.others)

    @property
    def ends(self) -> bool:
        """Whether the target ends here."""
        return True


class Excerpt(Example):
    """An example whose target is cut out of a longer text and continues beyond it: it gets no end token."""

    __slots__ = ()

    @property
    def ends(self) -> bool:
        """No: the text continues."""
        return False


class Task(Component):
    """What is learned: pairs of texts (source, target) in the splits train, valid and test.

    Invariances: a split holds the same examples at every call, in the same order, whatever other options of the recipe
        are, and in every process; no source is in two splits.
    Raises: ValueError in the constructor, where an option is out of range; UserError where data cannot be read.

    Example::

        from paddle_tfm.protocols import SPLITS, Example, Task
        from paddle_tfm.randomness import digest, generator

        class Twice(Task):  # "3 1" -> "3 1 3 1"
            def __init__(self, symbols: int = 50, size: int = 100):
                self.symbols, self.size = symbols, size

            def examples(self, split):
                rng = generator("twice", split)  # a function of its key: the same numbers at every call
                number = 0
                while number < self.size:
                    text = " ".join(str(i) for i in rng.integers(self.symbols, size=rng.integers(1, 5)))
                    if split == SPLITS[digest("twice", text) % 3]:  # no source is in two splits
                        number += 1
                        yield Example(text, f"{text} {text}")
    """

    kind: ClassVar[str] = "task"

    def examples(self, split: str) -> Iterable[Example]:
        """The examples of a split, the same at every call and in the same order.

        Raises:
            UserError: the data cannot be read; with file and line.
        """
        raise NotImplementedError

    def read_head(self, split: str) -> None:
        """Read the beginning of the files that the options name for a split, and fetch none: what is wrong with them is
        what `paddle-tfm check` says. Default: there are no such files.

        Raises:
            UserError: a file is missing, or is not what it must be.
        """

    def remarks(self) -> Iterable[str]:
        """What a user should know of the files after `examples` has read them: what was guessed, and what was left out.
        Default: nothing."""
        return ()

    def dropped(self) -> Mapping[str, int]:
        """How many examples an option left out, as `option=value`, of what `examples` has read. Default: none."""
        return {}
