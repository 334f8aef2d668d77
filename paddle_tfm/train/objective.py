"""The training objective over tokens: cross entropy, and R-Drop's divergence if the recipe sets `train.r_drop`."""

from __future__ import annotations

import paddle
from paddle import Tensor

from paddle_tfm.data.batches import Batch
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.protocols import Tap


def objective(model: Transformer, batch: Batch[Tensor], smoothing: float, r_drop: float, tap: Tap) -> Tensor:
    """The training objective summed over real target tokens, in nats: a scalar. Divide by `batch.tokens`.

    Auxiliary losses are not in it: they are added to `tap`, because they belong to a batch and not to its tokens.

    Without `r_drop` α: the cross entropy. With it, two passes p and q with independent dropout, and half of R-Drop's
    loss, ½ (CE(p) + CE(q)) + α/4 (KL(p ‖ q) + KL(q ‖ p)) (arXiv:2106.14448), so that its scale is that of one pass.
    """
    if not r_drop:
        return model.cross_entropy(batch, smoothing, tap)
    # Every row twice, [2B, …].
    doubled = batch.map_arrays(lambda part: paddle.stack([part, part], 1).reshape([-1, part.shape[1]]))
    h, memory = model(doubled, tap)
    head = model.head
    losses = head.loss(h, model.target(doubled), memory, smoothing)  # [2B, T]
    log_probs = head.log_probs(h, memory)  # [2B, T, V]
    p, q = log_probs.reshape([-1, 2, *log_probs.shape[1:]]).unbind(1)  # [B, T, V] each
    divergence = ((p.exp() - q.exp()) * (p - q)).sum(-1)  # KL(p ‖ q) + KL(q ‖ p)
    token_losses = losses.reshape([-1, 2, losses.shape[1]]).mean(1) + 0.25 * r_drop * divergence
    return (token_losses * batch.target_valid.astype(token_losses.dtype)).sum()
