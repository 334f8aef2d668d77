"""Looking after every pair, without an end that is set before: e-values, which are valid whenever one stops."""

from __future__ import annotations

import math

import numpy as np

from paddle_tfm.comparison.statistics import signs
from paddle_tfm.comparison.statistics.intervals import common

WIDTH = 2.0  # standard deviation of the effects that the test is made for, in standard deviations of a difference


def evidence(t: np.ndarray, pairs: int, width: float = WIDTH) -> np.ndarray:
    """The e-value of t after n pairs: the ratio of the likelihoods of t with an effect δ = μ/σ ~ N(0, width²) and with
    none. With c = width⁻²,

        E_n = √(c / (n + c)) · (1 − n / (n + c) · t² / (t² + n − 1))^(−n/2).

    It is the mixture of Lai (1976) with the right Haar prior dσ/σ, in which σ cancels: with no difference a martingale
    of mean 1 (Wang and Ramdas, arXiv:2310.03722, section 4), so that P(some E_n ≥ 1/α) ≤ α (Ville).
    """
    c = width**-2
    with np.errstate(divide="ignore"):
        share = 1 / (1 + (pairs - 1) / np.square(t, dtype=np.float64))
    return np.sqrt(c / (pairs + c)) * (1 - pairs / (pairs + c) * share) ** (-pairs / 2)


class OpenEnded:
    """A paired t test after every pair from the second on. It needs more pairs than `Looks` for the same difference:
    the price of no end.

    Args:
        width: the standard deviation of the effects that it is made for, in standard deviations of a difference.
    """

    def __init__(self, width: float = WIDTH) -> None:
        self.width = width

    def upto(self, pairs: int) -> tuple[int, ...]:
        """The looks that `pairs` pairs suffice for: all from the second on."""
        return tuple(range(2, pairs + 1))

    def bound(self, size: int, level: float) -> float:
        """The |t| from which on E_n ≥ 1 / level; infinite where n pairs cannot come to it."""
        c = self.width**-2
        share = (size + c) / size * (1 - (level**2 * c / (size + c)) ** (1 / size))
        return math.sqrt((size - 1) * share / (1 - share)) if share < 1 else math.inf

    def p_values(self, differences: np.ndarray) -> np.ndarray:
        """1 / max E_k over k ≤ n, at each look [..., looks] of `differences` [..., pairs].

        From the first pair on that lacks a value only the signs of pairs are used: the e-value before it is multiplied
        with that of the signs since, which leaves it a martingale.
        """
        columns = []
        whole = np.logical_and.accumulate(np.isfinite(differences), -1)
        known = np.where(whole, differences, 0.0)
        sums, squares = np.cumsum(known, -1), np.cumsum(np.square(known), -1)
        before = np.ones(differences.shape[:-1])  # the e-value up to the last pair before one lacks a value
        won, lost = np.zeros_like(before), np.zeros_like(before)
        for size in range(1, differences.shape[-1] + 1):
            now, last = whole[..., size - 1], differences[..., size - 1]
            with np.errstate(divide="ignore", invalid="ignore"):
                rest = np.maximum(squares[..., size - 1] - sums[..., size - 1] ** 2 / size, 0)
                t = sums[..., size - 1] / np.sqrt(size * rest / max(size - 1, 1))
            if size > 1:
                before = np.where(now, evidence(np.where(np.isnan(t), 0.0, t), size, self.width), before)
            won, lost = won + (~now & (last > 0)), lost + (~now & (last < 0))
            if size > 1:
                columns.append(1 / (before * signs.sign_evidence(won, lost)))
        if not columns:
            return np.ones((*differences.shape[:-1], 0))
        return np.minimum(np.minimum.accumulate(np.stack(columns, -1), -1), 1)

    def interval(self, differences: np.ndarray, level: float) -> tuple[float, float]:
        """What no look so far excludes: mean ± bound · s / √n of every look, cut with each other. Looks after a pair
        that lacks a value cut no more off it."""
        low, high = -math.inf, math.inf
        for size in self.upto(len(differences)):
            some = differences[:size]
            if not signs.complete(some) or math.isinf(bound := self.bound(size, level)):
                continue
            half = bound * float(some.std(ddof=1)) / math.sqrt(size)
            low, high = common((low, high), (float(some.mean()) - half, float(some.mean()) + half))
        return low, high
