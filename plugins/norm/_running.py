"""Running statistics: how a batch moves them, and how they are re-estimated from several batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import paddle
from paddle import Tensor

from paddle_tfm.protocols import Norm


class Pool:
    """Count, mean and variance of all tokens of several batches, each token with the same weight. With s the share of
    the newest batch in the tokens so far, and μ_B and σ²_B its own (Chan et al. 1983),

        σ² ← (1 − s) σ² + s σ²_B + s (1 − s) (μ_B − μ)²,  μ ← μ + s (μ_B − μ)

    so that what lies between batches is part of the variance, as in arXiv:2105.07576, section 3. `least`: a batch
    with fewer tokens is left out.
    """

    def __init__(self, least: int):
        self.least = least
        self.count = self.mean = self.variance = paddle.zeros([1])

    def add(self, mean: Tensor, variance: Tensor, count: Tensor) -> None:
        """Add a batch: mean and (biased) variance [.., C] of `count` tokens each."""
        count = count * (count >= self.least).astype(count.dtype)
        self.count = self.count + count
        share = count / self.count.clip(min=1.0)
        between = mean - self.mean
        self.variance = self.variance + share * (variance - self.variance + (1.0 - share) * paddle.square(between))
        self.mean = self.mean + share * between

    def store(self, running: Tensor, pooled: Tensor) -> None:
        """Set a running value to the pooled one, `mean` or `variance`, where any token was counted."""
        pooled = paddle.where(self.count > 0.0, pooled, running).reshape(running.shape)
        paddle.assign(pooled, output=running)


class PooledNorm(Norm):
    """A norm with running statistics that can be re-estimated.

    `_pool` is None but within `pooling`: then `_remember` adds to it instead of moving the running values.
    """

    least = 2  # tokens from which a batch has statistics

    def __init__(self, population: int):
        super().__init__()
        self.population = population
        self._pool: Pool | None = None

    @contextmanager
    def pooling(self) -> Iterator[None]:
        self._pool = Pool(self.least)
        try:
            yield
            with paddle.no_grad():
                self._end(self._pool)
        finally:
            self._pool = None

    def _end(self, pool: Pool) -> None:
        """Store what was pooled."""
        raise NotImplementedError
