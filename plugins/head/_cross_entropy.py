"""The softmax and the loss that the heads share, exact however far apart the logits are."""

from __future__ import annotations

from collections.abc import Callable

import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm import ops, place

CLIPPED = 60.0  # above this a loss may be another number above it


def full_precision(logits: Tensor) -> Tensor:
    """Logits of half precision as float32; others as they are."""
    return logits if logits.dtype in (paddle.float32, paddle.float64) else logits.astype("float32")


def log_sum_exp(logits: Tensor) -> Tensor:
    """log Σ exp of logits [B, T, V] → [B, T, 1]."""
    total = ops.log_sum_exp(logits.reshape([-1, logits.shape[-1]]))  # [B, T, V] -> [N, V]
    return total.reshape([*logits.shape[:-1], 1])


def log_softmax(logits: Tensor) -> Tensor:
    """log softmax of logits [B, T, V] over V."""
    return ops.log_softmax(logits.reshape([-1, logits.shape[-1]])).reshape(logits.shape)  # [B, T, V] -> [N, V] -> back


def log_softmax_(logits: Tensor) -> Tensor:
    """log softmax of logits [B, T, V] over V, for which the caller gives `logits` away."""
    return ops.log_softmax_(logits.reshape([-1, logits.shape[-1]])).reshape(logits.shape)  # [B, T, V] -> [N, V] -> back


def cross_entropy(
    project: Callable[[Tensor], Tensor],
    h: Tensor,
    words: Tensor,
    bias: Tensor | None,
    target: Tensor,
    smoothing: float,
    pad_id: int,
    cap: float | None = None,
) -> Tensor:
    """(1 − ε) (−log p_target) + ε mean over v ≠ pad of (−log p_v), p = softmax(h wordsᵀ + bias); 0 where the target is
    padding. With a `cap` the logits are softly capped (`soft_cap`).

    h [B, T, C], target int64 [B, T] → [B, T]. `project` computes logits [N, V] = h wordsᵀ + bias at each call, of the
    real tokens [N, C], with words [V, C] and bias [V]: padding is left out before it. Smoothing is ε (logit_target −
    mean logit), both of these from h, so that it costs no pass over [N, V], neither forward nor backward; with a `cap`
    it does.
    """
    batch, length, width = h.shape
    h, target = h.reshape([-1, width]), target.flatten()  # [B, T, C] -> [B · T, C]
    real = paddle.nonzero(target != pad_id).squeeze(-1)
    some = real.shape[0] < target.shape[0]
    if some:
        h, target = paddle.gather(h, real), paddle.gather(target, real)  # [N, C], [N]
    if smoothing and cap is not None:
        bent = paddle.tanh(full_precision(project(h)) / cap)  # the logits / cap
        of_target = paddle.take_along_axis(bent, target.unsqueeze(-1), -1, broadcast=False).squeeze(-1)
        apart = of_target - (bent.sum(-1) - bent[:, pad_id]) / (words.shape[0] - 1)
        loss = negative_log(lambda h: soft_cap(project(h), cap), h, target, cap * bent) + smoothing * cap * apart
    else:
        loss = negative_log(lambda h: soft_cap(project(h), cap), h, target)
    if smoothing and cap is None:
        h, words = full_precision(h), full_precision(words)
        of_target = (h * F.embedding(target, words)).sum(-1)  # [N]
        spread = paddle.ones([words.shape[0]], words.dtype)
        spread[pad_id] = 0.0
        mean = paddle.matmul(h, paddle.matmul(spread, words))  # Σ over v ≠ pad of logit_v, [N]
        if bias is not None:
            bias = full_precision(bias)
            of_target = of_target + F.embedding(target, bias.unsqueeze(1)).squeeze(-1)
            mean = mean + paddle.dot(spread, bias)
        loss = loss + smoothing * (of_target - mean / (words.shape[0] - 1))
    if some:
        loss = paddle.scatter(paddle.zeros([batch * length], loss.dtype), real, loss)
    return loss.reshape([batch, length])


def soft_cap(logits: Tensor, cap: float | None) -> Tensor:
    """cap · tanh(logits / cap), between −cap and cap (Gemma 2, arXiv:2408.00118); None: as they are."""
    return logits if cap is None else cap * paddle.tanh(logits / cap)


def negative_log(
    project: Callable[[Tensor], Tensor], h: Tensor, target: Tensor, logits: Tensor | None = None
) -> Tensor:
    """−log p_target [N], with logits [N, V] = `project(h)` or as they are computed already, which the loss may then
    take the place of. Where a kernel may have clipped one (`ops.softmax_nll`), all are computed once more."""
    loss = ops.softmax_nll(full_precision(project(h)) if logits is None else logits, target)
    if not place.on_cpu(loss) or float(loss.detach().max()) < CLIPPED:
        return loss
    with paddle.no_grad():
        logits = full_precision(project(h))
        exact = ops.log_sum_exp(logits) - paddle.take_along_axis(logits, target.unsqueeze(-1), -1, broadcast=False)
        mended = exact.squeeze(-1) - loss
    return loss + mended
