"""Numbers in, the sequence in order out."""

from __future__ import annotations

from collections.abc import Sequence

from paddle_tfm_plugins.task._sequences import Sequences


class Sort(Sequences):
    """Write a sequence of numbers from the smallest to the largest."""

    def answer(self, sequence: Sequence[int]) -> Sequence[int]:
        return sorted(sequence)
