"""Text to pieces and back."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import numpy as np

from paddle_tfm.protocols.component import Component


class Tokenizer(Component):
    """Splits a text into pieces, and joins pieces to a text.

    Invariances: detokenize(tokenize(text)) == normalize(text), where `normalize` says what is lost (runs of spaces);
        `save` and `load` change nothing.
    Raises: ValueError in the constructor, where an option is out of range; UserError where a text cannot be segmented.

    Example::

        from paddle_tfm.protocols import Tokenizer

        class Syllables(Tokenizer):  # "ba-na-na split" -> ba na na ▁ split, for texts with hyphens in their words
            def normalize(self, text):
                return " ".join(text.replace("-", "").replace("▁", "").split())

            def tokenize(self, text):
                return " ▁ ".join(text.replace("▁", "").split()).replace("-", " ").split()

            def detokenize(self, pieces):
                return "".join(pieces).replace("▁", " ")
    """

    kind: ClassVar[str] = "tokenizer"

    def read_head(self) -> None:
        """Read the files that the options name: what is wrong with them is what `paddle-tfm check` says. Default: there
        are no such files.

        Raises:
            UserError: a file is missing, or is not what it must be.
        """

    def fit(self, texts: Iterable[str]) -> None:
        """Learn from the training texts of one side, or of both where one tokenizer serves both. Most tokenizers have
        nothing to learn. `texts` can be gone through once, and may be millions: keep a bounded part of them. Called
        again, it begins again, and nothing is left of the texts before."""

    def extend(self, texts: Iterable[str]) -> None:
        """Learn further pieces from texts with which a training continues, and keep those that it has. By default
        there is nothing to learn, as where pieces are words: those that the texts bring get rows of their own."""

    def normalize(self, text: str) -> str:
        """What of `text` survives: by default, runs of white space become one space and the ends are trimmed."""
        return " ".join(text.split())

    def joined(self, text: str) -> str:
        """A text of the corpus as people read it, which is scored and written: by default the text itself. A tokenizer
        of texts that come cut into pieces puts these together."""
        return text

    def tokenize(self, text: str) -> list[str]:
        """The pieces of a text."""
        raise NotImplementedError

    @property
    def sampling(self) -> bool:
        """Whether `sample` draws, so that each epoch sees other pieces."""
        return False

    def sample(self, text: str, rng: np.random.Generator) -> list[str]:
        """One random segmentation, for training: a function of the text and of `rng`, which is keyed by example and
        epoch. It joins to the same text."""
        return self.tokenize(text)

    def pieces(self) -> list[str]:
        """Pieces that belong in the vocabulary though the training texts may not show them, known after `fit`."""
        return []

    def detokenize(self, pieces: Iterable[str]) -> str:
        """The text of pieces."""
        raise NotImplementedError

    def remarks(self) -> list[str]:
        """What a user should know before the training, found by `fit`: a sentence each."""
        return []

    def save(self, folder: Path) -> None:
        """Write what `fit` learned into `folder`."""

    def load(self, folder: Path) -> None:
        """Read what `save` wrote."""
