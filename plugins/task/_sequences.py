"""What the tasks on sequences of numbers share: the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paddle_tfm.language import _
from paddle_tfm.protocols import Example, Task
from paddle_tfm.randomness import digest, generator
from paddle_tfm.validators import ascending, between, positive

MIN_SEQUENCES = 100  # that the options must allow, so that each split has some


class Sequences(Task):
    """Sequences of the numbers 1 … `symbols`, written with spaces, of lengths drawn uniformly from
    `min_length` … `max_length`.

    A sequence belongs to test, valid or train (10%, 10%, 80%) by a hash of it and `data_seed`: no two splits share one,
    whatever their sizes. A longer split begins with the shorter one. Within a split a sequence may come twice.

    Options: `test_min_length` and `test_max_length` give the test split other lengths, to see what a model does past
    those of training. None: those of the other splits.
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
        test_min_length: int | None = None,
        test_max_length: int | None = None,
    ):
        positive(symbols=symbols, min_length=min_length, train=train, valid=valid, test=test)
        between("[1, 1000000]", max_length=max_length, test_max_length=test_max_length)
        ascending(min_length=min_length, max_length=max_length)
        tested = (
            min_length if test_min_length is None else test_min_length,
            max_length if test_max_length is None else test_max_length,
        )
        positive(test_min_length=tested[0])
        ascending(test_min_length=tested[0], test_max_length=tested[1])
        self.lengths = {"train": (min_length, max_length), "valid": (min_length, max_length), "test": tested}
        for low, high in self.lengths.values():
            lengths = range(low, min(high + 1, low + MIN_SEQUENCES))
            number = sum(min(symbols, MIN_SEQUENCES) ** min(length, MIN_SEQUENCES) for length in lengths)
            if number < MIN_SEQUENCES:
                text = _("`symbols` and the lengths must allow {min_sequences} sequences or more, but allow {number}")
                raise ValueError(text.format(min_sequences=MIN_SEQUENCES, number=number))
        self.symbols, self.max_length = symbols, max(max_length, tested[1])
        self.sizes = {"train": train, "valid": valid, "test": test}
        self.data_seed = data_seed

    def answer(self, sequence: Sequence[int]) -> Sequence[int]:
        """The target of a source."""
        raise NotImplementedError

    def examples(self, split: str) -> Iterator[Example]:
        rng = generator(self.data_seed, "sequences", split)
        count, (shortest, longest) = 0, self.lengths[split]
        while count < self.sizes[split]:
            length = rng.integers(shortest, longest + 1)
            sequence = rng.integers(1, self.symbols + 1, size=length).tolist()
            source = write(sequence)
            if split == {0: "test", 1: "valid"}.get(digest(self.data_seed, source) % 10, "train"):
                count += 1
                yield Example(source, write(self.answer(sequence)))


def write(sequence: Sequence[int]) -> str:
    """The text of a sequence: "3 1 2"."""
    return " ".join(map(str, sequence))
