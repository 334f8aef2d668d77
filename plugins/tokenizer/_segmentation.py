"""Random segmentations of a word under a learned model of pieces; sentencepiece draws its own from a global generator."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from itertools import accumulate

Lattice = list[tuple[list[int], list[float]]]  # for each end: starts of the pieces that end there, cumulative weights


def lattice(word: str, scores: Mapping[str, float], longest: int, alpha: float) -> Lattice:
    """The forward pass over all segmentations: P(pieces) ∝ exp(alpha · Σ score), score = log probability of a piece.

    With F(end) = log Σ_start exp(F(start) + alpha · score(word[start:end])), a piece that ends at `end` starts at `start`
    with a weight of exp(F(start) + alpha · score). A character without a piece of its own is one of score 0, for there
    is no way round it. No piece is longer than `longest`.
    """
    forward = [0.0]
    ends: Lattice = [([], [])]
    for end in range(1, len(word) + 1):
        begins = range(max(0, end - longest), end)
        known = [(start, scores[word[start:end]]) for start in begins if word[start:end] in scores] or [(end - 1, 0.0)]
        logs = [forward[start] + alpha * score for start, score in known]
        top = max(logs)
        weights = list(accumulate(math.exp(log - top) for log in logs))
        forward.append(top + math.log(weights[-1]))
        ends.append(([start for start, _ in known], weights))
    return ends


def walk(word: str, ends: Lattice, draw: Callable[[], float]) -> list[str]:
    """One segmentation, drawn exactly from the distribution of `lattice`, from the end to the beginning (Kudo 2018,
    arXiv:1804.10959, with l → ∞: forward filtering, backward sampling)."""
    pieces = []
    end = len(word)
    while end:
        starts, weights = ends[end]
        start = starts[bisect(weights, draw() * weights[-1], hi=len(weights) - 1)]
        pieces.append(word[start:end])
        end = start
    return pieces[::-1]


def merge(word: str, scores: Mapping[str, float], dropout: float, draw: Callable[[], float]) -> list[str]:
    """Merges of neighbours into pieces, the best score first and leftmost, where each possible merge is left out with
    probability `dropout` at each step; the end is a step that leaves out all (Provilkov et al. 2020, arXiv:1910.13267).

    What a step leaves out is drawn lazily, from the best merge on: the first that stays is the one that is applied.
    """
    end = len(word)
    pieces, before, after = list(word), list(range(-1, end - 1)), list(range(1, end + 1))
    possible: list[tuple[float, int, str]] = []

    def offer(left: int) -> None:
        if left >= 0 and after[left] < end and (both := pieces[left] + pieces[after[left]]) in scores:
            heappush(possible, (-scores[both], left, both))

    for left in range(end):
        offer(left)
    while True:
        left_out = []
        while possible:
            _, left, both = candidate = heappop(possible)
            right = after[left]
            if right == end or not pieces[left] or pieces[left] + pieces[right] != both:
                continue  # one of the two has been merged meanwhile
            if draw() >= dropout:
                break
            left_out.append(candidate)
        else:
            return [piece for piece in pieces if piece]
        pieces[left], pieces[right], after[left] = both, "", after[right]
        if after[left] < end:
            before[after[left]] = left
        for candidate in left_out:
            heappush(possible, candidate)
        offer(before[left])
        offer(left)
