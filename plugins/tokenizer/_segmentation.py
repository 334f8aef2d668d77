"""Random segmentations of a word into learned pieces, from a generator of ours (sentencepiece's own is global)."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from itertools import accumulate

Lattice = list[tuple[list[int], list[float]]]  # for each end: starts of the pieces that end there, cumulative weights


def lattice(word: str, scores: Mapping[str, float], longest: int, alpha: float) -> Lattice:
    """The forward pass over all segmentations: P(pieces) ∝ exp(alpha · Σ score), score = log probability of a piece.

    With F(end) = log Σ_start exp(F(start) + alpha · score(word[start:end])), a piece that ends at `end` starts at
    `start` with a weight of exp(F(start) + alpha · score). A character without a piece of its own counts as a piece of
    score 0, for no segmentation avoids it. No piece is longer than `longest`.
    """
    forward = [0.0]
    ends: Lattice = [([], [])]
    for end in range(1, len(word) + 1):
        begins = range(max(0, end - longest), end)
        pieces = [(start, scores[word[start:end]]) for start in begins if word[start:end] in scores] or [(end - 1, 0.0)]
        logs = [forward[start] + alpha * score for start, score in pieces]
        top = max(logs)
        weights = list(accumulate(math.exp(log - top) for log in logs))
        forward.append(top + math.log(weights[-1]))
        ends.append(([start for start, _ in pieces], weights))
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
    """Merges of neighbours into pieces, the best score first and leftmost, where each possible merge is dropped with
    probability `dropout` at each step; a step that drops all is the last (Provilkov et al. 2020, arXiv:1910.13267).

    Merges are dropped lazily, from the best one on: the first that stays is the one that is applied.
    """
    end = len(word)
    pieces, before, after = list(word), list(range(-1, end - 1)), list(range(1, end + 1))
    possible: list[tuple[float, int, str]] = []

    def offer(left: int) -> None:
        if left >= 0 and after[left] < end and (merged := pieces[left] + pieces[after[left]]) in scores:
            heappush(possible, (-scores[merged], left, merged))

    for left in range(end):
        offer(left)
    while True:
        dropped = []
        while possible:
            _, left, merged = candidate = heappop(possible)
            right = after[left]
            if right == end or not pieces[left] or pieces[left] + pieces[right] != merged:
                continue  # one of the two has been merged since
            if draw() >= dropout:
                break
            dropped.append(candidate)
        else:
            return [piece for piece in pieces if piece]
        pieces[left], pieces[right], after[left] = merged, "", after[right]
        if after[left] < end:
            before[after[left]] = left
        for candidate in dropped:
            heappush(possible, candidate)
        offer(before[left])
        offer(left)
