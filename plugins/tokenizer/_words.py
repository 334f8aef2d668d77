"""What the tokenizers into words share: pieces that remember whether a space stands before them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import cache

from paddle_tfm.protocols import Tokenizer

SPACE = "▁"  # marks a piece with a space before it; in a text this character becomes "_"


class Words(Tokenizer):
    """Words between spaces, cut by `cut`; a piece at the start of a word is marked with a leading "▁".

    The start of the text counts as the start of a word, so that a word is the same piece wherever it stands; putting
    together drops that first space. What `normalize` changes: runs of white space become one space, the ends are
    trimmed, "▁" in the text becomes "_", and `lowercase` does what it says.
    """

    def __init__(self, lowercase: bool = False):
        self.lowercase = lowercase

    def normalize(self, text: str) -> str:
        text = super().normalize(text).replace(SPACE, "_")
        return text.lower() if self.lowercase else text

    def tokenize(self, text: str) -> list[str]:
        cut = self.cut
        return [piece for word in self.normalize(text).split() for piece in cut(word)]

    def cut(self, word: str) -> tuple[str, ...]:
        """The pieces of a word, the first one marked; together they are "▁" + the word."""
        raise NotImplementedError

    def detokenize(self, pieces: Iterable[str]) -> str:
        return "".join(pieces).replace(SPACE, " ").removeprefix(" ")


@cache
def character_class(character: str) -> str:
    """letter | mark (an accent or vowel sign, which continues a run of letters) | digit | other."""
    category = unicodedata.category(character)
    if category == "Nd":
        return "digit"
    return {"L": "letter", "M": "mark"}.get(category[0], "other")


@cache
def is_cjk(character: str) -> bool:
    """Whether this is a character of Chinese, Japanese or Korean writing (punctuation aside)."""
    name = unicodedata.name(character, "").removeprefix("HALFWIDTH ")
    return name.startswith(
        ("CJK UNIFIED", "CJK COMPATIBILITY IDEO", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO")
    )


def runs(word: str, is_separate=lambda character: False) -> list[str]:
    """Runs of letters with their marks, runs of digits, other characters one by one, and so those for which
    `is_separate`."""
    pieces: list[str] = []
    before = "other"
    for character in word:
        now = "other" if is_separate(character) else character_class(character)
        if now == before != "other" or (now == "mark" and before == "letter"):
            pieces[-1] += character
        else:
            pieces.append(character)
            before = now
    return pieces
