"""Running statistics: how a batch moves them, and how they are re-estimated from several batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import paddle
from paddle import Tensor, nn

from paddle_tfm import ops
from paddle_tfm.protocols import Norm
from paddle_tfm.validators import not_negative, positive


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

    def __init__(self, d_model: int, eps: float, population: int):
        super().__init__()
        positive(eps=eps)
        not_negative(population=population)
        self.eps, self.population = eps, population
        self._pool: Pool | None = None
        self.weight = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))
        self.bias = self.create_parameter([d_model], is_bias=True)

    def _tokens(self, x: Tensor, valid: Tensor | None) -> tuple[Tensor, Tensor]:
        """x [B, T, C] as rows [N, C], and 1 where one is real, otherwise 0, [N, 1]."""
        rows = ops.flatten(x, self.weight.dtype)
        real = ops.column_of_ones(rows) if valid is None else valid.reshape([-1, 1]).astype(rows.dtype)
        return rows, real

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


class MomentsNorm(PooledNorm):
    """One whose running statistics are mean and variance, [C] or [P, C] for each of P positions, which a batch with two
    tokens or more moves by `momentum`."""

    def __init__(self, d_model: int, eps: float, momentum: float | str, population: int, places: tuple[int, ...] = ()):
        super().__init__(d_model, eps, population)
        self.momentum = momentum
        self.register_buffer("running_mean", paddle.zeros([*places, d_model], self.weight.dtype))
        self.register_buffer("running_variance", paddle.ones([*places, d_model], self.weight.dtype))

    @paddle.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor, count: Tensor) -> None:
        """Move the running values towards the batch's, [1, C] or [P, C], where its `count` is enough."""
        if self._pool is not None:
            self._pool.add(mean, variance, count)
            return
        rate = self._rate((count > 1.0).astype(mean.dtype))
        unbiased = variance * (count / (count - 1.0).clip(min=1.0))
        for running, batch in ((self.running_mean, mean), (self.running_variance, unbiased)):
            paddle.assign(running + (batch.reshape(running.shape) - running) * rate, output=running)

    def _rate(self, enough: Tensor) -> Tensor:
        """The weight of the new batch; 0 where it is not `enough`, 1 or 0."""
        return self.momentum * enough

    def _end(self, pool: Pool) -> None:
        pool.store(self.running_mean, pool.mean)
        pool.store(self.running_variance, pool.variance)
