"""Filters of a training corpus: which pairs are left out, and how many by which."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import ClassVar

from paddle_tfm.data.pairs import Pair
from paddle_tfm.language import _
from paddle_tfm.text_lengths import UNSPACED

NO_LETTER = re.compile(r"[\W\d_]")  # or a mark, as Hindi has vowels
WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")


@dataclass(frozen=True)
class Filters:
    """Pairs that are left out of the training split, `filters: {ratio: 4}` in a recipe; what is null or false leaves
    out none, and `{}` is what stands here.

    Args:
        length: with a side of more words. A word stands between spaces; of a script without spaces each character is
            one. 100 is the default of OpusFilter.
        ratio: whose longer side has more than so many times the words of the shorter one. 3 is usual (OpusFilter's
            proposal; 9 in Moses' clean-corpus-n).
        letters: with a side whose share of letters among its characters, spaces aside, is smaller: tables, addresses,
            code. OpusFilter takes 0.75, spaces included.
        overlap: whose source or target is one of the validation or the test split.
        duplicates: that were there before; in memory, about 200 bytes a pair.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}  # a misspelt key of a recipe is no key

    length: int | None = 100
    ratio: float | None = 3.0
    letters: float | None = 0.5
    overlap: bool = True
    duplicates: bool = True

    def require_sound(self) -> None:
        """Raises ValueError where a setting is out of range."""
        sound = {
            "length": (self.length is None or self.length >= 1, _("1 or more")),
            "ratio": (self.ratio is None or self.ratio >= 1, _("1 or more")),
            "letters": (self.letters is None or 0 < self.letters <= 1, _("above 0 and at most 1")),
        }
        for name, (is_sound, what) in sound.items():
            if not is_sound:
                text = _("`filters.{name}` must be {what}, or null, but is {value}")
                raise ValueError(text.format(name=name, what=what, value=getattr(self, name)))


class Filtering:
    """One reading of a training split through `filters`. `held_out`: the pairs of the other splits."""

    def __init__(self, filters: Filters, held_out: Callable[[], Iterable[Pair]]):
        self.filters = filters
        self._held_out: tuple[set[str], set[str]] = (set(), set())
        for source, *references in held_out() if filters.overlap else ():
            self._held_out[0].add(source)
            self._held_out[1].update(references)
        # the hash of a pair → the file where it stood first, and its number
        self._first: dict[int, tuple[int, int]] = {}
        self._counts: dict[int, Counter[str]] = {}  # of each file; one that is read again counts once

    def kept(self, pairs: Iterable[Pair], file: int = 0) -> Iterator[Pair]:
        """The pairs of a file that are left, the same each time that it is read."""
        counts = self._counts[file] = Counter()
        for number, pair in enumerate(pairs):
            if reason := self._reason(pair, (file, number)):
                counts[reason] += 1
            else:
                yield pair

    def counts(self) -> dict[str, int]:
        """Each filter that left out pairs, as a setting, and how many; a pair counts for the first of them."""
        total = sum(self._counts.values(), Counter())
        settings = {each.name: getattr(self.filters, each.name) for each in fields(self.filters)}
        written = {name: f"filters.{name}={value}".removesuffix("=True") for name, value in settings.items()}
        return {setting: total[name] for name, setting in written.items() if total[name]}

    def _reason(self, pair: Pair, place: tuple[int, int]) -> str:
        filters, lengths = self.filters, [len(WORD.findall(text)) for text in pair]
        if filters.length is not None and max(lengths) > filters.length:
            return "length"
        if filters.ratio is not None and max(lengths) > filters.ratio * min(lengths):
            return "ratio"
        if filters.letters is not None and min(map(_letters, pair)) < filters.letters:
            return "letters"
        if any(text in side for text, side in zip(pair, self._held_out)):
            return "overlap"
        if filters.duplicates and self._first.setdefault(hash(pair), place) != place:
            return "duplicates"
        return ""


def _letters(text: str) -> float:
    """The share of letters, and marks on them, among the characters that are no space."""
    characters = "".join(text.split())
    others = sum(unicodedata.category(each)[0] != "M" for each in NO_LETTER.findall(characters))
    return 1 - others / len(characters) if characters else 0.0
