"""Text to pieces and back. Plugins subclass `Tokenizer`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar


class Tokenizer:
    """Splits a text into pieces, and puts pieces together again.

    Promise: ``detokenize(tokenize(text)) == normalize(text)``, where `normalize` says what is not kept (runs of spaces).
    """

    kind: ClassVar[str] = "tokenizer"

    def fit(self, texts: Iterable[str]) -> None:
        """Learn from the training texts of one side. Most tokenizers have nothing to learn."""

    def normalize(self, text: str) -> str:
        """What of `text` survives: by default, runs of white space become one space and the ends are trimmed."""
        return " ".join(text.split())

    def tokenize(self, text: str) -> list[str]:
        """The pieces of a text."""
        raise NotImplementedError

    def detokenize(self, pieces: Iterable[str]) -> str:
        """The text of pieces."""
        raise NotImplementedError

    def save(self, folder: Path) -> None:
        """Write what `fit` learned into `folder`."""

    def load(self, folder: Path) -> None:
        """Read what `save` wrote."""
