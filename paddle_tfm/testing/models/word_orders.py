"""Orders of the words of a text, for what must tell one order from another."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

SHUFFLED = 4


def word_orders(length: int) -> Iterator[np.ndarray]:
    """Where the word at each place [T] comes from: two exchanged that stand near the begin, far apart and near the end,
    then some of all that are shuffled. The first word stays, which many encodings tell from all others, and the last,
    at which a decoder is read.

    An encoding may tell near distances only, or far ones, or which side a word stands at: what has to see one of these
    orders sees any encoding that tells more than the first position.
    """
    for i, j in ((1, 2), (1, length - 2), (length - 3, length - 2)):
        order = np.arange(length)
        order[[i, j]] = j, i
        yield order
    rng = np.random.default_rng(14)
    for _ in range(SHUFFLED):
        order, some = np.arange(length), np.sort(rng.choice(np.arange(1, length - 1), length // 2, replace=False))
        order[some] = np.roll(some, 1)
        yield order
