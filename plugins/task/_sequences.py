"""What the tasks on sequences of numbers share: the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paddle_tfm.errors import UserError, unknown
from paddle_tfm.protocols import SPLITS, Example, Task
from paddle_tfm.randomness import digest, generator
from paddle_tfm.validators import ascending, positive

MIN_SEQUENCES = 100  # that the options must allow, so that each split has some


class Sequences(Task):
    """Sequences of the numbers 1 … `symbols`, written with spaces, of lengths drawn uniformly from
    `min_length` … `max_length`.

    A sequence belongs to test, valid or train (10%, 10%, 80%) by a hash of it and `data_seed`: no two splits share one,
    whatever their sizes. A longer split begins with the shorter one. Within a split a sequence may come twice.
    """

    def __init__(
        self,
        symbols: int = 10,
        min_length: int = 10,
        max_length: int = 10,
        train: int = 10_000,
        valid: int = 500,
        test: int = 500,
        data_seed: int = 1,
    ):
        positive(symbols=symbols, min_length=min_length, train=train, valid=valid, test=test)
        ascending(min_length=min_length, max_length=max_length)
        number = sum(symbols**length for length in range(min_length, max_length + 1))
        if number < MIN_SEQUENCES:
            raise ValueError(
                f"`symbols` and the lengths must allow {MIN_SEQUENCES} sequences or more, but allow {number}"
            )
        self.symbols, self.min_length, self.max_length = symbols, min_length, max_length
        self.sizes = {"train": train, "valid": valid, "test": test}
        self.data_seed = data_seed

    def answer(self, sequence: Sequence[int]) -> Sequence[int]:
        """The target of a source."""
        raise NotImplementedError

    def examples(self, split: str) -> Iterator[Example]:
        if split not in SPLITS:
            raise UserError(unknown("split", split, SPLITS))
        return self._draw(split)

    def _draw(self, split: str) -> Iterator[Example]:
        rng = generator(self.data_seed, "sequences", split)
        count = 0
        while count < self.sizes[split]:
            length = rng.integers(self.min_length, self.max_length + 1)
            sequence = rng.integers(1, self.symbols + 1, size=length).tolist()
            source = write(sequence)
            if split == {0: "test", 1: "valid"}.get(digest(self.data_seed, source) % 10, "train"):
                count += 1
                yield Example(source, write(self.answer(sequence)))


def write(sequence: Sequence[int]) -> str:
    """The text of a sequence: "3 1 2"."""
    return " ".join(map(str, sequence))
