"""Restoring capitals and punctuation as sequence labelling."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from paddle_tfm.data import datasets
from paddle_tfm.protocols import Dataset, Example, Task

CASES = ((str.islower, "low"), (str.istitle, "Cap"), (str.isupper, "ALL"))


class Truecase(Task):
    """Restoring capitals and punctuation: one tag for each word, so that target and source are equally long.

    The source is the target side of a pair of `dataset` in lower case without punctuation, the target one tag a word:
    low | Cap | ALL | mix, followed by the punctuation after the word. "Ein Mann, der liest." becomes
    "ein mann der liest" → "Cap Cap, low low.". In German it takes grammar: nouns are capitalized.
    """

    expected_failures = {
        "splits_disjoint": "the splits are the corpus' own: a sentence that comes in two of them stays"
    }

    def __init__(self, dataset: Dataset):
        self.dataset = dataset

    def examples(self, split: str) -> Iterator[Example]:
        for pair in datasets.examples(self.dataset, split):
            words = [(word, label) for word, label in map(tag, pair.target.split()) if word]
            if words:
                yield Example(" ".join(word for word, _ in words), " ".join(label for _, label in words))


def tag(token: str) -> tuple[str, str]:
    """("Mann,") → ("mann", "Cap,"); the word is "" for a token without a letter or digit."""
    word = token.strip("".join(character for character in token if _is_mark(character)))
    after = token[token.rfind(word) + len(word) :] if word else ""
    case = next((name for test, name in CASES if test(word)), "low" if word.lower() == word else "mix")
    return word.lower(), case + after


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"
