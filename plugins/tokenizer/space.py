"""What stands between spaces, uncut."""

from __future__ import annotations

from collections.abc import Iterable

from paddle_tfm.protocols import Tokenizer


class Space(Tokenizer):
    """A piece is what stands between spaces, whatever it is made of: phones, tokens that something else has cut.

    "t͡ʃ ɪ p ˈs" is t͡ʃ ɪ p ˈs.
    """

    def tokenize(self, text: str) -> list[str]:
        return text.split()

    def detokenize(self, pieces: Iterable[str]) -> str:
        return " ".join(pieces)
