"""Which language is this?"""

from __future__ import annotations

from collections.abc import Iterator

from paddle_tfm.data import datasets
from paddle_tfm.language import _
from paddle_tfm.protocols import SPLITS, Dataset, Example, Task
from paddle_tfm.randomness import digest

HELD_OUT_EVERY = 20  # one text in so many is in valid, one in test
UNSPACED_LANGUAGES = ("zh", "ja", "th")  # written without spaces between words: a character counts as a word


class Language(Task):
    """Language identification: the source is a text of a parallel corpus, the target its language, one piece.

    Each pair of `datasets` gives two examples, labelled as its options `source` and `target` are ("en", "zh"). With
    `words` (from, to) a text is cut to its first n words, n drawn for each text from that range by a hash of it: the
    shorter, the harder. A hash of the result sends one text in 20 to valid, one in 20 to test and the others to train,
    so that no text is in two splits, however short; within a split a text may occur often.
    """

    def __init__(self, datasets: list[Dataset], words: list[int] | None = None):
        if words is not None and (len(words) != 2 or not 1 <= words[0] <= words[1]):
            text = _("`words` must be two numbers, from and to, from 1 on, but is {words}")
            raise ValueError(text.format(words=words))
        for dataset in datasets:
            if dataset.languages is None:
                text = _("`datasets` must be of texts in languages, but {name} is not")
                raise ValueError(text.format(name=type(dataset).__name__))
        self.datasets, self.words = datasets, words

    def examples(self, split: str) -> Iterator[Example]:
        pairs = (
            (pair, dataset) for dataset in self.datasets for part in SPLITS for pair in datasets.examples(dataset, part)
        )
        for pair, dataset in pairs:
            for text, language in zip((pair.source, pair.target), dataset.languages):
                cut = self._cut(text, language)
                if _split(cut) == split:
                    yield Example(cut, language)

    def _cut(self, text: str, language: str) -> str:
        if self.words is None:
            return text
        fewest, most = self.words
        count = fewest + digest("words", text) % (most - fewest + 1)
        return text[:count] if language in UNSPACED_LANGUAGES else " ".join(text.split()[:count])


def _split(text: str) -> str:
    return {0: "valid", 1: "test"}.get(digest("split", text) % HELD_OUT_EVERY, "train")
