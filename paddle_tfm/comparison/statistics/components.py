"""Where the chance in a score comes from: seeds, the order of training data, the items of the test set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESIDUAL = "residual"


@dataclass(frozen=True)
class Components:
    """Variance components of a table: `single`, of one level of each factor, and `of_mean`, what each contributes to
    the variance of the mean over the table. `limiting` is the factor whose contribution is the largest: more of its
    levels would help most."""

    single: dict[str, float]
    of_mean: dict[str, float]
    limiting: str


def components(table: np.ndarray, factors: Sequence[str] = ("seed", "item")) -> Components:
    """Components of a full crossed `table`, an axis for each of `factors`: [seeds, items], [seeds, orders, items]. For
    what limits a comparison the table holds paired differences of two systems, item by item.

    The model is y = μ + Σ_f a_f + e with random effects, and e takes in all interactions. With N cells, n_f levels of a
    factor and mean squares MS, E[MS_f] = σ_e² + (N / n_f) σ_f² (Searle, Casella and McCulloch 1992, chapter 4), so that

        σ_f² = max(0, (MS_f − MS_e) n_f / N),    of the mean: σ_f² / n_f and σ_e² / N.

    What is left over shrinks with every factor; it limits through the one with the fewest levels, and is never the
    answer itself.

    Raises:
        ValueError: an axis without a factor, or with fewer than two levels.
    """
    table = np.asarray(table, dtype=np.float64)
    if table.ndim != len(factors) or min(table.shape, default=0) < 2:
        raise ValueError(f"{len(factors)} factors need a table with as many axes of 2 or more, got {table.shape}")
    mean, cells = table.mean(), table.size
    rest, left = ((table - mean) ** 2).sum(), cells - 1
    squares = {}
    for axis, factor in enumerate(factors):
        others = tuple(other for other in range(table.ndim) if other != axis)
        levels = table.shape[axis]
        total = ((table.mean(others) - mean) ** 2).sum() * cells / levels
        squares[factor] = total / (levels - 1), levels
        rest, left = rest - total, left - (levels - 1)
    error = max(rest, 0.0) / left
    single = {f: max(0.0, float((square - error) * levels / cells)) for f, (square, levels) in squares.items()}
    of_mean = {f: value / squares[f][1] for f, value in single.items()}
    limiting = max(of_mean, key=lambda factor: of_mean[factor])
    if not any(of_mean.values()):
        limiting = min(factors, key=lambda factor: squares[factor][1])
    return Components({**single, RESIDUAL: float(error)}, {**of_mean, RESIDUAL: float(error / cells)}, limiting)
