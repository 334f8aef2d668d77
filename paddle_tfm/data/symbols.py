"""Symbols of the user's that no tokenizer cuts: `<2en>`, `<num>`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from paddle_tfm.data.vocabulary import SPECIAL
from paddle_tfm.errors import UserError
from paddle_tfm.language import _
from paddle_tfm.protocols import Tokenizer

JOIN = "<joined>"  # the piece between a symbol and its neighbour where no space stands


class WithSymbols(Tokenizer):
    """A tokenizer to which each of `symbols` is one piece, whatever the tokenizer does to the text between them.

    "$<num>." is, by words, ▁$ <joined> <num> <joined> ▁. and comes back as it was; a symbol between spaces is a piece
    and nothing else. White space beside a symbol becomes one space, and none at an end of the text. `unseen`, after
    `fit`: the symbols that stood in none of its texts.

    Raises:
        UserError: a symbol is a piece that every vocabulary has.
    """

    def __init__(self, inner: Tokenizer, symbols: Sequence[str]):
        if taken := {*symbols} & {*SPECIAL, JOIN}:
            text = _("`vocabulary.symbols`: {symbol} is a piece of every vocabulary; choose another name")
            raise UserError(text.format(symbol=min(taken)))
        self.inner, self.symbols = inner, symbols
        longest_first = sorted(symbols, key=len, reverse=True)
        self._symbol = re.compile("|".join(map(re.escape, longest_first)))
        self._cut = re.compile(rf"(\s?(?:{self._symbol.pattern})\s?)")
        self._kept = frozenset([*symbols, JOIN])
        self.unseen: set[str] = set()

    def read_head(self) -> None:
        self.inner.read_head()

    def fit(self, texts: Iterable[str]) -> None:
        self.unseen = set(self.symbols)
        between = self._between(texts)
        self.inner.fit(between)
        while self.unseen and next(between, None) is not None:  # what the tokenizer did not want to read
            pass

    def extend(self, texts: Iterable[str]) -> None:
        self.inner.extend(self._between(texts))

    def _between(self, texts: Iterable[str]) -> Iterator[str]:
        for text in texts:
            if self.unseen:
                self.unseen.difference_update(self._symbol.findall(text))
            yield self._symbol.sub(" ", text)

    def _pieces(self, text: str, cut: Callable[[str], list[str]]) -> list[str]:
        pieces: list[str] = []
        apart = True  # whether a space, or the beginning, stands before what comes next
        for i, part in enumerate(self._cut.split(text)):
            if not part:
                continue
            if not (apart or part[0].isspace()):
                pieces.append(JOIN)
            pieces += [part.strip()] if i % 2 else cut(part)
            apart = part[-1].isspace()
        return pieces

    def tokenize(self, text: str) -> list[str]:
        return self._pieces(text, self.inner.tokenize)

    @property
    def sampling(self) -> bool:
        return self.inner.sampling

    def sample(self, text: str, rng: np.random.Generator) -> list[str]:
        return self._pieces(text, lambda part: self.inner.sample(part, rng))

    def pieces(self) -> list[str]:
        return list(dict.fromkeys([*self.symbols, JOIN, *self.inner.pieces()]))

    def normalize(self, text: str) -> str:
        return self.detokenize(self.tokenize(text))

    def joined(self, text: str) -> str:
        return "".join(part if i % 2 else self.inner.joined(part) for i, part in enumerate(self._cut.split(text)))

    def detokenize(self, pieces: Iterable[str]) -> str:
        text, space = "", ""
        for kept, run in groupby(pieces, self._kept.__contains__):
            for part in run if kept else [self.inner.detokenize(run)]:
                if part == JOIN:
                    space = ""
                elif part:
                    text, space = f"{text}{space}{part}", " "
        return text

    def remarks(self) -> list[str]:
        return self.inner.remarks()

    def save(self, folder: Path) -> None:
        self.inner.save(folder)

    def load(self, folder: Path) -> None:
        self.inner.load(folder)
