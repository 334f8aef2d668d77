"""Numbers in, the sequence as it is out."""

from __future__ import annotations

from collections.abc import Sequence

from paddle_tfm_plugins.task._sequences import Sequences


class Copy(Sequences):
    """Copy a sequence of numbers, the first example of The Annotated Transformer."""

    def answer(self, sequence: Sequence[int]) -> Sequence[int]:
        return sequence
