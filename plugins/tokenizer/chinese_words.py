"""Chinese words, by a segmenter."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np

from paddle_tfm.language import _
from paddle_tfm.protocols import Tokenizer
from paddle_tfm_plugins.tokenizer._file import reading
from paddle_tfm_plugins.tokenizer.word import Word

COPY = "dictionary.txt"
# Chinese and Japanese letters and punctuation; "“" and "—" are of other languages too
CHINESE = "[\u2e80-\u30ff\u31c0-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
_gap = re.compile(rf"\s+(?={CHINESE})|(?<={CHINESE})\s+")
_chinese = re.compile(CHINESE)


class ChineseWords(Tokenizer):
    """Chinese words as pieces: "我们昨天见面。" is ▁我们 ▁昨天 ▁见面 ▁。; outputs have no spaces between them.

    `segmenter` is ``jieba``, which must be installed, or ``spaces``: the texts come cut by another (THULAC, LTP, HanLP,
    MeCab for Japanese), a space between words. `dictionary` gives jieba words of yours, one a line, each with its count
    if you know it (``云计算 5``); the run keeps a copy. `subwords` cuts the words further, ``{name: sentencepiece}``
    say; None: words are pieces, and runs of other letters and digits as in `word`, so that rare ones are unknown.

    What `normalize` changes, also in outputs and references before they are scored: a space beside a Chinese character
    or its punctuation is dropped; and what `subwords` (else `word`) changes.

    Raises:
        ValueError: jieba is not installed, or `dictionary` is given without it.
    """

    def __init__(
        self,
        segmenter: Literal["jieba", "spaces"] = "jieba",
        dictionary: str | None = None,
        subwords: Tokenizer | None = None,
    ):
        if segmenter == "jieba" and find_spec("jieba") is None:
            raise ValueError(_("`segmenter: jieba` needs the package jieba: pip install jieba"))
        if segmenter != "jieba" and dictionary is not None:
            text = _("`dictionary` is for jieba; with `segmenter: {segmenter}` the texts come cut")
            raise ValueError(text.format(segmenter=segmenter))
        self.dictionary, self.inner = dictionary, subwords or Word()
        self._words = b""
        self._spaced = self._segmenter() if segmenter == "jieba" else lambda text: text

    def _segmenter(self):
        import jieba  # an optional dependency

        jieba.setLogLevel("WARNING")
        words = jieba.Tokenizer()
        if self._words:
            words.load_userdict(io.BytesIO(self._words))

        @lru_cache(maxsize=1 << 16)
        def spaced(text: str) -> str:
            """The text with a space at the ends of each word that ends in Chinese."""
            result = ""
            for word in words.cut(" ".join(text.split())):
                ends = result and (_chinese.match(result[-1]) or _chinese.match(word))
                result += f" {word}" if ends else word
            return result

        return spaced

    def read_head(self) -> None:
        if self.dictionary is not None:
            with reading(self.dictionary):
                self._use_words(Path(self.dictionary).read_bytes())
        self.inner.read_head()

    def _use_words(self, content: bytes) -> None:
        for number, line in enumerate(content.decode("utf-8-sig").splitlines(), 1):
            if line.strip() and not re.fullmatch(r"\S+( \d+)?( [a-z]+)?\s*", line):
                text = _("line {number}: must hold a word, or a word, a space and its count, but is {line}")
                raise ValueError(text.format(number=number, line=repr(line[:40])))
        self._words = content
        self._spaced = self._segmenter()

    def fit(self, texts: Iterable[str]) -> None:
        self.read_head()
        self.inner.fit(self._spaced(text) for text in texts)

    def joined(self, text: str) -> str:
        return _gap.sub("", " ".join(text.split()))

    def normalize(self, text: str) -> str:
        return self.joined(self.inner.normalize(self._spaced(text)))

    def tokenize(self, text: str) -> list[str]:
        return self.inner.tokenize(self._spaced(text))

    @property
    def sampling(self) -> bool:
        return self.inner.sampling

    def sample(self, text: str, rng: np.random.Generator) -> list[str]:
        return self.inner.sample(self._spaced(text), rng)

    def pieces(self) -> list[str]:
        return self.inner.pieces()

    def detokenize(self, pieces: Iterable[str]) -> str:
        return self.joined(self.inner.detokenize(pieces))

    def remarks(self) -> list[str]:
        return self.inner.remarks()

    def save(self, folder: Path) -> None:
        if self.dictionary is not None:
            (folder / COPY).write_bytes(self._words)
        self.inner.save(folder)

    def load(self, folder: Path) -> None:
        """Read what `save` wrote; raises OSError or ValueError if that cannot be."""
        if self.dictionary is not None:
            self._use_words((folder / COPY).read_bytes())
        self.inner.load(folder)
