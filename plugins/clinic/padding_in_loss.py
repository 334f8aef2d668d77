"""Padding in the loss."""

from __future__ import annotations

from typing import ClassVar

import paddle
from paddle import Tensor

from paddle_tfm.protocols import Memory
from paddle_tfm_plugins.head.linear import LinearHead


class PaddingInLoss(LinearHead):
    """Wrong on purpose: the loss includes padding: that of padding after the end of a sentence is added.

    Symptom: the loss of a batch changes when it is padded further; on an easy task the model hardly does.
    h [B, T, C] → log-probabilities [B, T, V].
    """

    expected_failures: ClassVar[dict[str, str]] = {
        "loss_is_log_prob": "the mistake: the loss of padding is added",
        "smoothing": "the mistake: the loss of padding is added",
        "padding_in_training": "the mistake: more padding, another loss",
    }

    def loss(self, h: Tensor, target: Tensor, memory: Memory, smoothing: float = 0.0) -> Tensor:
        losses = -paddle.take_along_axis(self.log_probs(h, memory), target.unsqueeze(-1), -1, broadcast=False).squeeze(
            -1
        )
        real = (target != self.pad_id).astype(losses.dtype)
        return losses * real + (losses * (1.0 - real)).sum(-1, keepdim=True) / real.sum(-1, keepdim=True).clip(min=1.0)
