"""Which language is this?"""

from __future__ import annotations

from collections.abc import Iterator

from paddle_tfm.data.task import Dataset, Example, Task
from paddle_tfm.randomness import digest


class Language(Task):
    """Language identification: the source is a text of a parallel corpus, the target its language, one piece.

    Each pair of `dataset` gives two examples, named as the dataset's options `source` and `target` are ("en", "zh").
    With `words` (from, to) a text is cut to its first n words, n drawn for each text from that range by a hash of it
    (for a text without spaces, characters count as words): the shorter, the harder.
    """

    def __init__(self, datasets: list[Dataset], words: list[int] | None = None):
        if words is not None and (len(words) != 2 or not 1 <= words[0] <= words[1]):
            raise ValueError(f"`words` must be two numbers, from and to, from 1 on, but is {words}")
        for dataset in datasets:
            if dataset.languages is None:
                raise ValueError(f"`datasets` must be of texts in languages, but {type(dataset).__name__} is not")
        self.datasets, self.words = datasets, words

    def examples(self, split: str) -> Iterator[Example]:
        for dataset in self.datasets:
            for pair in dataset.examples(split):
                for text, language in zip((pair.source, pair.target), dataset.languages):
                    yield Example(self._cut(text), language)

    def _cut(self, text: str) -> str:
        if self.words is None:
            return text
        fewest, most = self.words
        count = fewest + digest("words", text) % (most - fewest + 1)
        units = text.split()
        return " ".join(units[:count]) if len(units) > 1 else text[:count]
