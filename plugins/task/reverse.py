"""Numbers in, the sequence backwards out."""

from __future__ import annotations

from collections.abc import Sequence

from paddle_tfm_plugins.task._sequences import Sequences


class Reverse(Sequences):
    """Write a sequence of numbers backwards."""

    def answer(self, sequence: Sequence[int]) -> Sequence[int]:
        return sequence[::-1]
