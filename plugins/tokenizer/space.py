"""What stands between spaces, uncut."""

from __future__ import annotations

import re
from collections.abc import Iterable

from paddle_tfm.language import _
from paddle_tfm.protocols import Tokenizer


class Space(Tokenizer):
    """A piece is what stands between spaces, whatever it is made of: phones, tokens that something else has cut.

    "t͡ʃ ɪ p ˈs" is t͡ʃ ɪ p ˈs.

    Options: `separator`, of texts that subword-nmt has cut: what ends a piece that is not the last of its word (its
        --separator, ``@@``). Outputs and references are then joined before they are scored and written, as
        ``sed 's/@@ //g'`` does (fairseq's --remove-bpe). None: texts are scored as they are.

    Raises:
        ValueError: `separator` is empty, or has white space in it.
    """

    def __init__(self, separator: str | None = None):
        if separator is not None and separator.split() != [separator]:
            text = _("`separator` must be what ends a piece, without white space, but is {separator!r}")
            raise ValueError(text.format(separator=separator))
        self.separator = separator

    def joined(self, text: str) -> str:
        if self.separator is None:
            return text
        return re.sub(f"{re.escape(self.separator)}( |$)", "", " ".join(text.split()))

    def normalize(self, text: str) -> str:
        return " ".join(self.joined(text).split())

    def tokenize(self, text: str) -> list[str]:
        return text.split()

    def detokenize(self, pieces: Iterable[str]) -> str:
        return self.joined(" ".join(pieces))
