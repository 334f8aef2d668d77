"""The loss that `linear` and `tied` share."""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import Tensor


def cross_entropy(logits: Tensor, target: Tensor, smoothing: float, pad_id: int) -> Tensor:
    """(1 − ε) (−log p_target) + ε mean over v ≠ pad of (−log p_v), p = softmax(logits).

    logits [B, T, V], target int64 [B, T] → float32 [B, T]. Computed as −log p_target + ε (logit_target − mean logit):
    the probabilities are held once, and only for the gradient.
    """
    logits = logits.astype("float32")
    index = target.unsqueeze(-1)  # [B, T, 1]
    loss = F.cross_entropy(logits, index, reduction="none")  # [B, T, 1]
    if smoothing:
        total = logits.sum(-1, keepdim=True) - logits[..., pad_id : pad_id + 1]
        loss = loss + smoothing * (paddle.take_along_axis(logits, index, -1) - total / (logits.shape[-1] - 1))
    return loss.squeeze(-1)
