"""Where the chance in a mean difference comes from: seeds, or the items of the test set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Components(NamedTuple):
    """What seeds, items and the residual, by which a seed moves some items more than others, contribute to the variance
    of the mean over a table of so many `seeds` and `items`."""

    seeds: int
    items: int
    of_seeds: float
    of_items: float
    residual: float

    @property
    def total(self) -> float:
        """The variance of the mean: the three are independent."""
        return self.of_seeds + self.of_items + self.residual

    @property
    def limited_by(self) -> str:
        """Of which more would help most. The residual shrinks with both, and limits through the one of which there are
        fewer."""
        if not self.total:
            return "neither"
        if self.of_seeds == self.of_items:
            return "seeds" if self.seeds <= self.items else "test items"
        return "seeds" if self.of_seeds > self.of_items else "test items"


def components(table: np.ndarray) -> Components:
    """Components of the paired differences of two systems, [seeds, items].

    The model is y = μ + a_seed + b_item + e with random effects, and e takes in the interaction. With S seeds, I items
    and mean squares MS, E[MS_seed] = σ_e² + I σ_seed² (Searle, Casella and McCulloch 1992, chapter 4), so that to the
    variance of the mean contribute

        seeds: max(0, MS_seed − MS_e) / (S I),    items: max(0, MS_item − MS_e) / (S I),    the residual: MS_e / (S I).

    There must be two seeds and two items or more.
    """
    seeds, items = table.shape
    mean, cells = table.mean(), table.size
    of_seeds = ((table.mean(1) - mean) ** 2).sum() * items
    of_items = ((table.mean(0) - mean) ** 2).sum() * seeds
    rest = max(((table - mean) ** 2).sum() - of_seeds - of_items, 0.0)
    error = rest / ((seeds - 1) * (items - 1))
    squares = of_seeds / (seeds - 1), of_items / (items - 1)
    one, other = (max(0.0, float(square - error)) / cells for square in squares)
    return Components(seeds, items, one, other, float(error / cells))
