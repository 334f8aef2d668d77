"""Characters as pieces."""

from __future__ import annotations

from collections.abc import Iterable

from paddle_tfm.protocols import Tokenizer


class Char(Tokenizer):
    """Every character is a piece, the space too.

    Options: exact: keep line breaks and runs of spaces as they are, for running text; else they become one space.
    """

    def __init__(self, exact: bool = False):
        self.exact = exact

    def normalize(self, text: str) -> str:
        return text if self.exact else super().normalize(text)

    def tokenize(self, text: str) -> list[str]:
        return list(self.normalize(text))

    def detokenize(self, pieces: Iterable[str]) -> str:
        return "".join(pieces)
