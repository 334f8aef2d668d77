"""Byte-pair encoding by the codes of subword-nmt."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from paddle_tfm.language import _
from paddle_tfm_plugins.tokenizer._file import OfFile

END = "</w>"


class SubwordNmt(OfFile):
    """Byte-pair encoding (arXiv:1508.07909) by the codes that `subword-nmt learn-bpe` wrote, as `apply-bpe` cuts.

    A word is what stands between spaces; a piece that does not end it ends in "@@": "lower" is low@@ er. `file` is the
    codes, relative to the current folder; the run keeps a copy. Texts must be prepared as they were for `learn-bpe`
    (Moses' tokenizer, say); a remark says how many of the first hundred training texts do not come back as they are.
    Texts that are cut already take `space` with `separator: '@@'`.
    """

    COPY = "codes.bpe"

    def use(self, content: bytes) -> None:
        first, *lines = content.decode("utf-8-sig").rstrip("\n").split("\n")
        version = re.fullmatch(r"#version: *(\S+)\s*", first)
        if version is None:
            lines.insert(0, first)
        elif re.sub(r"(\.0+)*$", "", version[1]) not in ("0.1", "0.2"):
            raise ValueError(_("line 1: its version must be 0.1 or 0.2, but is {version}").format(version=version[1]))
        self._ends_apart = version is None or version[1].startswith("0.1")
        ranks: dict[tuple[str, ...], int] = {}
        for number, line in enumerate(lines, 1 if version is None else 2):
            pair = tuple(line.strip("\r ").split(" "))
            if len(pair) != 2 or not all(pair):
                text = _("line {number}: must hold the two pieces of a merge and a space, but is {line!r}")
                raise ValueError(text.format(number=number, line=line[:40]))
            ranks.setdefault(pair, number)
        self._ranks = ranks
        self._cut = lru_cache(maxsize=1 << 16)(self._merge)

    def _merge(self, word: str) -> tuple[str, ...]:
        """The pair that was learned first is merged everywhere, from left to right, until none is left."""
        pieces = [*word, END] if self._ends_apart else [*word[:-1], word[-1] + END]
        while known := [pair for pair in pairwise(pieces) if pair in self._ranks]:
            best = min(known, key=self._ranks.__getitem__)
            merged: list[str] = []
            i = 0
            while i < len(pieces):
                size = 2 if tuple(pieces[i : i + 2]) == best else 1
                merged.append("".join(pieces[i : i + size]))
                i += size
            pieces = merged
        last = pieces.pop().removesuffix(END)
        pieces += [last] if last else []
        return (*(f"{piece}@@" for piece in pieces[:-1]), pieces[-1])

    def tokenize(self, text: str) -> list[str]:
        return [piece for word in text.split() for piece in self._cut(word)]

    def detokenize(self, pieces: Iterable[str]) -> str:
        return re.sub("@@( |$)", "", " ".join(pieces))
