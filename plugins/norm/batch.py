"""Batch normalization over the real tokens of a batch."""

from __future__ import annotations

from typing import ClassVar, Literal

import paddle
from paddle import Tensor

from paddle_tfm import ops
from paddle_tfm.ranks import moments_over_ranks, several
from paddle_tfm.validators import between
from paddle_tfm_plugins.norm._running import MomentsNorm


class BatchNorm(MomentsNorm):
    """Batch normalization of each channel over all real tokens of the batch (Ioffe & Szegedy 2015, arXiv:1502.03167).

    y = (x − mean) / sqrt(variance + eps) · weight + bias at real tokens, 0 at padding. x [B, T, C], `valid` bool [B, T]
    (None: all are real) → [B, T, C]; `positions` do not matter.

    Training: mean and (biased) variance of the real tokens, in two passes and at least float32, and a running update
    ``running += momentum · (batch − running)`` whose variance is the unbiased one, n / (n − 1) times the batch's.
    Evaluation: the running values, which stay as they are; the buffers `running_mean` and `running_variance` [C] are
    part of a checkpoint. With fewer than two real tokens there is nothing to estimate: the running values serve, and
    stay. Padding changes nothing, neither values nor gradients.

    Know before use: in training each output depends on every other token of the batch, in a decoder also on later ones
    of its own sentence, so causality holds in evaluation only, and cached decoding equals the full pass in evaluation
    mode only. Hence the encoder is its usual place: ``norm: {encoder: batch, decoder: layer}``; ``norm: batch`` puts it
    everywhere, which `paddle-tfm check` remarks on. By default the trainer's batches hold sentences of one length, so
    that in training the statistics tell how long these are, and running values do not: train with
    ``train.batches: mixed``. How far running values are from a batch's own is logged at each evaluation
    (`discrepancy`). They lag behind the weights, and their variance leaves out how batches differ in their means:
    `population` mends both, and is needed where other weights are evaluated than were trained (`train.ema`). For the
    mean of the last weights (`train.average`) the trainer does so anyway. Where several
    processes share a batch, the statistics are of all of it.

    Options: `eps` is added to the variance; `momentum` is the weight of the new batch in the running values, or
    "cumulative": 1/t for the t-th batch, the mean of all batches so far (as PyTorch's ``momentum=None``).
    `population`: from how many training batches mean and variance are re-estimated before each evaluation, under the
    weights that are evaluated (precise BatchNorm, Wu & Johnson 2021, arXiv:2105.07576), training continuing
    with the running values; 0: evaluation uses these. The largest in a model holds for all.

    Raises:
        ValueError: `eps` is not positive, `momentum` is not in (0, 1], or `population` is negative.
    """

    invariances = frozenset({"channel_scale", "channel_shift"})
    expected_failures: ClassVar[dict[str, str]] = {
        "causal_in_training": "in training the statistics mix all tokens of the batch, also later ones of the same "
        "sentence; in evaluation nothing leaks",
        "neighbours_in_training": "in training the statistics mix the sentences of the batch; in evaluation "
        "they do not",
    }

    def __init__(
        self, d_model: int, eps: float = 1e-5, momentum: float | Literal["cumulative"] = 0.1, population: int = 0
    ):
        super().__init__(d_model, eps, momentum, population)
        if momentum == "cumulative":
            self.register_buffer("batches", paddle.zeros([1]))
        else:
            between("(0, 1]", momentum=momentum)

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        rows, real = self._tokens(x, valid)
        away = None
        if self.training:
            mean, variance, centred, away, count = self._statistics(rows, real)
            self._remember(mean, variance, count)
        else:
            variance = self.running_variance.unsqueeze(0)  # [1, C]
            centred = ops.add_outer(rows, ops.column_of_ones(rows), -self.running_mean.unsqueeze(0))
        scale, bias = paddle.rsqrt(variance + self.eps) * self.weight, self.bias.unsqueeze(0)
        if away is not None:
            bias = bias + away * scale
        return ops.restore(ops.add_outer(centred * ops.outer(real, scale), real, bias), x)

    @paddle.no_grad()
    def discrepancy(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> dict[str, Tensor]:
        mean, variance, *_ = self._statistics(*self._tokens(x, valid))
        deviation, running = paddle.sqrt(variance + self.eps), paddle.sqrt(self.running_variance + self.eps)
        return {
            "mean": ((self.running_mean - mean).abs() / deviation).mean(),
            "deviation": (running / deviation - 1.0).abs().mean(),
        }

    def _statistics(self, rows: Tensor, real: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor]:
        """Mean and variance [1, C] of the real tokens, the running ones if there are fewer than two; all rows less the
        mean [N, C], but where several processes share a batch less that of this one's rows, and how far it is from the
        mean [1, C]; and how many tokens are real."""
        count, ones, running = real.sum(), ops.column_of_ones(rows), self.running_mean.unsqueeze(0)
        weights = real / count.clip(min=1.0)
        mean, away = ops.sum_over_rows(weights, rows), None
        if not several():
            mean = paddle.where(count > 1.0, mean, running)
        centred = ops.add_outer(rows, ones, -mean)
        variance = ops.sum_over_rows(weights, paddle.square(centred))
        if several():
            count, whole, variance = moments_over_ranks(count, mean, variance)
            whole = paddle.where(count > 1.0, whole, running)
            mean, away = whole, mean - whole
        return mean, paddle.where(count > 1.0, variance, self.running_variance.unsqueeze(0)), centred, away, count

    def _rate(self, enough: Tensor) -> Tensor:
        if self.momentum != "cumulative":
            return super()._rate(enough)
        paddle.assign(self.batches + enough, output=self.batches)
        return enough / self.batches.clip(min=1.0)
