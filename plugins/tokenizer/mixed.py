"""Chinese, Japanese and Korean by character, the rest by word."""

from __future__ import annotations

from functools import lru_cache

from paddle_tfm_plugins.tokenizer._words import SPACE, Words, is_cjk, runs


class Mixed(Words):
    """Chinese, Japanese and Korean characters one by one, everything else as in `word`.

    "我是 Anna。" is 我 是 ▁Anna 。
    """

    def tokenize(self, text: str) -> list[str]:
        pieces = super().tokenize(text)
        if pieces and is_cjk(pieces[0][1:2]):  # no space is lost: `detokenize` drops the first one anyway
            pieces[0] = pieces[0].removeprefix(SPACE)
        return pieces

    def cut(self, word: str) -> tuple[str, ...]:
        return _cut(word)


@lru_cache(maxsize=1 << 16)
def _cut(word: str) -> tuple[str, ...]:
    first, *rest = runs(word, is_separate=is_cjk)
    return (SPACE + first, *rest)
