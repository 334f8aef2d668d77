"""Batch normalization with a loss on how far a batch is from what evaluation will use."""

from __future__ import annotations

from typing import ClassVar, Literal

import paddle
from paddle import Tensor

from paddle_tfm.validators import not_negative
from paddle_tfm_plugins.norm.batch import BatchNorm


class RegularizedBatchNorm(BatchNorm):
    """Regularized BatchNorm (RBN): `batch`, and a loss that keeps it near evaluation (Wang 2022, arXiv:2210.05153).

    The output is that of `batch`, and so is what to know before use. In training each norm adds to the loss

        (mean_weight · Σ (μ − μ_B)² + variance_weight · Σ |σ² − σ_B²|) / n

    over channels: μ_B and σ_B² are of the batch, and carry the gradient; μ and σ² are the running values, this batch
    already in them; n is the number of real tokens that this norm sees, which stands for the number of target tokens
    that our loss is a mean over: the authors add the rest to a sum over those. So the layers below learn to give
    batches that resemble each other: Wang et al. (2022) find that it is the difference between the statistics of
    training and of evaluation at which batch normalization fails in texts. It is about the encoder:
    ``norm: {encoder: regularized_batch, decoder: layer}``. The sum of these losses over all norms is logged as the
    auxiliary loss `regularized_batch`; `discrepancy` says how far the two still are.

    Options: `mean_weight` and `variance_weight` as above (the authors' for pre-norm on IWSLT 2014; for post-norm they
    take 60 and 0); `eps`, `momentum` and `population` as in `batch`.

    Raises:
        ValueError: a weight is negative; what `batch` raises.
    """

    expected_failures: ClassVar[dict[str, str]] = {
        **BatchNorm.expected_failures,
        "padding_in_training": "compared are two passes of one model, and the loss is how far a batch is from the "
        "running values, which each pass moves",
        "repeatable": "compared are two passes of one model, and the loss is how far a batch is from the running "
        "values, which each pass moves",
        "gradients": "in the gradient of its loss the running values are constants, though this batch is in them",
    }

    def __init__(
        self,
        *,
        mean_weight: float = 0.1,
        variance_weight: float = 0.01,
        momentum: float | Literal["cumulative"] = 0.05,
        **parent,
    ):
        super().__init__(momentum=momentum, **parent)
        not_negative(mean_weight=mean_weight, variance_weight=variance_weight)
        self.mean_weight, self.variance_weight = mean_weight, variance_weight

    def _remember(self, mean: Tensor, variance: Tensor, count: Tensor) -> None:
        super()._remember(mean, variance, count)
        gap = paddle.square(self.running_mean.detach() - mean).sum() * self.mean_weight
        gap = gap + (self.running_variance.detach() - variance).abs().sum() * self.variance_weight
        self.add_aux_loss("regularized_batch", gap / count.clip(min=1.0))
