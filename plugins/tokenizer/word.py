"""Words as pieces."""

from __future__ import annotations

from functools import lru_cache

from paddle_tfm_plugins.tokenizer._words import SPACE, Words, runs


class Word(Words):
    """Runs of letters, runs of digits, other characters one by one; "▁" marks the start of a word.

    "It's 25°, Anna" is ▁It ' s ▁25 ° , ▁Anna.
    """

    def cut(self, word: str) -> tuple[str, ...]:
        return _cut(word)


@lru_cache(maxsize=1 << 16)
def _cut(word: str) -> tuple[str, ...]:
    first, *rest = runs(word)
    return (SPACE + first, *rest)
