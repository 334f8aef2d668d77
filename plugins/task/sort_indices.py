"""Numbers in, out come the positions at which they stand in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paddle_tfm.protocols import Example
from paddle_tfm_plugins.task._sequences import Sequences


class SortIndices(Sequences):
    """Say at which positions of a sequence of numbers to read it in order, from the smallest to the largest.

    "30 7 12" is "1 2 0": positions count from 0, and of equal numbers the first comes first. Positions are written with
    as many digits as the largest ("07" beside "11"), so that the target vocabulary, ordered by falling frequency and
    then by text, has them in their own order: what the head `pointer_network` asks for.
    """

    def examples(self, split: str) -> Iterator[Example]:
        digits = len(str(self.max_length - 1))
        return (
            Example(source, " ".join(position.zfill(digits) for position in target.split()))
            for source, target, *_ in super().examples(split)
        )

    def answer(self, sequence: Sequence[int]) -> Sequence[int]:
        return sorted(range(len(sequence)), key=sequence.__getitem__)
