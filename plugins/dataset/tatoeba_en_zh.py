"""English sentences and their Chinese translations, from Tatoeba."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from pathlib import Path

from paddle_tfm.data.pairs import Files, pairs, share
from paddle_tfm.language import _
from paddle_tfm.protocols import Dataset, Example, RemoteFile
from paddle_tfm.validators import at_least, one_of
from paddle_tfm_plugins.dataset._upstream import github

LANGUAGES = ("en", "zh")
HELD_OUT_SHARE = 1 / 32  # of the English sentences, for each of valid and test
FILE = RemoteFile(
    "cmn.txt",
    github("remysys/dl", "a10ba1d1cf27e21a25259f3b35c6bbf4ecbbfa8e", "data/cmn.txt"),
    "d8719bfc39a689b8040652557e73a9117dae47691011c8e9a6b3038efe97dc97",
    1976573,
)


class TatoebaEnZh(Dataset):
    """Short English sentences with Chinese translations, simplified and traditional mixed; `source` may be either side.

    32,028 pairs, many English sentences with several translations. The corpus has no splits of its own; ours are fixed:
    a hash of the English sentence (its letters and digits, lower case) sends one sentence in 32 to valid, one in 32 to
    test and the others to train, so that no English sentence is in two splits, whatever its translations: 30,082 pairs
    to train, 965 to validate, 981 to test. A Chinese sentence may translate two English ones: of the 981 to test, 197
    have a Chinese side that train or valid holds too, which matters where `source` is zh.

    `train` leaves so many pairs to train on, all translations of the English sentences with the smallest hashes: what a
    small corpus of everyday sentences is like. Valid and test stay as they are.

    The corpus is the one that manythings.org prepared. Its own archive changes over time, so that the file comes from a
    public copy at a fixed commit.

    Source: tatoeba.org, by way of manythings.org/anki (cmn-eng).
    """

    folder = "tatoeba-en-zh"
    home = "https://www.manythings.org/anki/"
    licence = "CC BY 2.0 FR"
    citation = "sentences of tatoeba.org, as prepared by manythings.org/anki (cmn-eng)"

    def __init__(self, source: str = "en", target: str = "zh", train: int | None = None):
        one_of(LANGUAGES, source=source, target=target)
        if source == target:
            raise ValueError(
                _("`target` must be another language than `source`, but both are '{source}'").format(source=source)
            )
        self.languages = source, target
        self.columns = (0, 1) if source == "en" else (1, 0)
        if train is not None:
            at_least(1, train=train)
        self.train = train

    @classmethod
    def catalogue(cls) -> list[RemoteFile]:
        return [FILE]

    def read(self, split: str, paths: Mapping[str, Path]) -> Iterator[Example]:
        of_split = (pair for pair in pairs(Files(str(paths[FILE.name]))) if split_of(pair[0]) == split)
        if split == "train" and self.train is not None:
            of_split = iter(heapq.nsmallest(self.train, of_split, key=lambda pair: _position(pair[0])))
        for pair in of_split:
            yield Example(*(pair[column] for column in self.columns))


def _position(english: str) -> float:
    return share("".join(filter(str.isalnum, english.casefold())))


def split_of(english: str) -> str:
    """The split that an English sentence belongs to, with all its translations."""
    position = _position(english)
    return "valid" if position < HELD_OUT_SHARE else "test" if position < 2 * HELD_OUT_SHARE else "train"
