"""Batch normalization with statistics of its own for each position."""

from __future__ import annotations

from typing import ClassVar

import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm import ops
from paddle_tfm.language import _
from paddle_tfm.ranks import sum_over_ranks
from paddle_tfm.validators import at_least, between
from paddle_tfm_plugins.norm._running import MomentsNorm


class BatchNormPerPosition(MomentsNorm):
    """Batch normalization with statistics for each position, over the sentences (cf. Cooijmans 2016, arXiv:1603.09025).

    y = (x − mean[p]) / sqrt(variance[p] + eps) · weight + bias at real tokens, 0 at padding; p is the token's position.
    x [B, T, C], `valid` bool [B, T] (None: all are real), `positions` int64 [B|1, T] → [B, T, C]. Weight and bias [C]
    are shared by all positions.

    Training: mean and (biased) variance of the real tokens at p, in two passes and at least float32, and a running
    update as in `batch` (unbiased variance). Evaluation: the running values [max_length, C], which stay as they are. A
    position with fewer than two real tokens in a batch uses its running values and leaves them; one that was never
    trained keeps mean 0 and variance 1. Positions from max_length − 1 on share the last entry.

    In training a token sees those at its own position in other sentences, so sentences influence each other; later
    tokens of its own sentence do so only where positions share an entry. In evaluation nothing leaks. How far the
    running values are from a batch's own is logged at each evaluation (`discrepancy`).

    Options: `eps` is added to the variance; `momentum` is the weight of the new batch in the running values;
    `population` as in `batch`, a position that none of its batches reaches keeping its running values.

    Raises:
        ValueError: `eps` is not positive, `momentum` is not in (0, 1], `population` is negative, `max_length` is below
            1, or a call comes without positions.
    """

    invariances = frozenset({"channel_scale", "channel_shift"})
    ends_at_max_length = True
    expected_failures: ClassVar[dict[str, str]] = {
        "causal_in_training": "in training the statistics of a position mix the sentences of the batch, so a token "
        "of one sentence depends on those of others; in evaluation nothing leaks",
        "neighbours_in_training": "in training the statistics of a position mix the sentences of the batch; in "
        "evaluation they do not",
    }

    def __init__(self, d_model: int, max_length: int, eps: float = 1e-5, momentum: float = 0.1, population: int = 0):
        at_least(1, max_length=max_length)
        between("(0, 1]", momentum=momentum)
        super().__init__(d_model, eps, momentum, population, (max_length,))

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        if positions is None:
            raise ValueError(
                _("`positions` must be a tensor for a norm with statistics for each position, but is None")
            )
        rows, real, index = self._tokens_at(x, valid, positions)
        if self.training:
            mean, variance, centred, count = self._statistics(rows, real, index)
            self._remember(mean.detach(), variance.detach(), count)
        else:
            variance, centred = self.running_variance, rows - F.embedding(index, self.running_mean)
        scale = F.embedding(index, paddle.rsqrt(variance + self.eps)) * ops.outer(real, self.weight.unsqueeze(0))
        return ops.restore(ops.add_outer(centred * scale, real, self.bias.unsqueeze(0)), x)

    @paddle.no_grad()
    def discrepancy(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> dict[str, Tensor]:
        """The means are over channels and over the tokens at positions with statistics of their own in this batch."""
        mean, variance, _, count = self._statistics(*self._tokens_at(x, valid, positions))
        share = count * (count > 1.0).astype(count.dtype)  # [P, 1]
        share = share / share.sum().clip(min=1.0)
        deviation, running = paddle.sqrt(variance + self.eps), paddle.sqrt(self.running_variance + self.eps)
        return {
            "mean": ((self.running_mean - mean).abs() / deviation * share).sum() / mean.shape[1],
            "deviation": ((running / deviation - 1.0).abs() * share).sum() / mean.shape[1],
        }

    def _tokens_at(self, x: Tensor, valid: Tensor | None, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rows [N, C], which are real [N, 1], and the entry of each in the statistics [N]."""
        rows, real = self._tokens(x, valid)
        last = self.running_mean.shape[0] - 1
        return rows, real, positions.clip(0, last).expand(x.shape[:2]).reshape([-1])  # [B|1, T] -> [N]

    def _statistics(self, rows: Tensor, real: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Mean and variance [P, C] of the real tokens at each position, the running ones where there are fewer than
        two; all rows less their mean [N, C]; and how many are real [P, 1]."""
        count = self._sums(real, index)
        enough, divisor = count > 1.0, count.clip(min=1.0)
        mean = paddle.where(enough, self._sums(rows * real, index) / divisor, self.running_mean)
        centred = rows - F.embedding(index, mean)
        squares = self._sums(paddle.square(centred) * real, index)
        return mean, paddle.where(enough, squares / divisor, self.running_variance), centred, count

    def _sums(self, rows: Tensor, index: Tensor) -> Tensor:
        """[N, W] → [P, W]: the sum of the rows at each position, those of other ranks too."""
        empty = paddle.zeros([self.running_mean.shape[0], rows.shape[1]], rows.dtype)
        return sum_over_ranks(empty.index_add(index, 0, rows))
