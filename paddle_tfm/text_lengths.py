"""Texts by their length: in what it is counted, and buckets of texts of about one length."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

# Characters of scripts without spaces between words, for a class of a regular expression: Thai, Lao, Burmese, Khmer,
# Japanese, Chinese.
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
MEASURES: dict[str, Callable[[str], int]] = {
    "words": lambda text: len(text.split()),
    "characters": lambda text: sum(map(len, text.split())),
}


def lengths(texts: Sequence[str]) -> tuple[str, list[int]]:
    """The unit, and the length of each text in it: words between spaces, or characters if most texts have no space
    (Chinese; single words)."""
    words = [*map(MEASURES["words"], texts)]
    if 2 * sum(number > 1 for number in words) >= len(texts):
        return "words", words
    return "characters", [*map(MEASURES["characters"], texts)]


def equal_edges(sizes: Sequence[int], number: int) -> list[int]:
    """The edges of `number` buckets of about equal numbers of texts; fewer if many lengths are equal."""
    shares = np.arange(1, number) / number
    edges = np.quantile(sizes, shares, method="lower").tolist()
    return sorted({size for size in edges if size < max(sizes)})


def buckets(sizes: Sequence[int], edges: Sequence[int]) -> dict[str, list[int]]:
    """The indices of the texts in each bucket, by the bucket's name: lengths up to the first of the ascending `edges`,
    above it up to the second, …, above the last."""
    ends = pairwise([-math.inf, *edges, math.inf])
    return {_range(low, high): [i for i, size in enumerate(sizes) if low < size <= high] for low, high in ends}


def _range(low: float, high: float) -> str:
    """The name of the bucket of lengths above `low` and up to `high`."""
    if low == -math.inf:
        return "all" if high == math.inf else f"≤ {high}"
    if high == math.inf:
        return f"> {low}"
    return str(high) if high == low + 1 else f"{low + 1}–{high}"
