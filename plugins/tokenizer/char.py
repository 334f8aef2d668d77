"""Characters as pieces."""

from __future__ import annotations

from collections.abc import Iterable

from paddle_tfm.data.tokenizer import Tokenizer


class Char(Tokenizer):
    """Every character is a piece, the space too."""

    def tokenize(self, text: str) -> list[str]:
        return list(self.normalize(text))

    def detokenize(self, pieces: Iterable[str]) -> str:
        return "".join(pieces)
