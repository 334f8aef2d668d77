"""The softmax and the loss that the heads share, exact however far apart the logits are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm import algebra, fused, paddle_compat, place
from paddle_tfm.onednn import kernels
from paddle_tfm.onednn.primitives import address

SAFE = 60.0  # Σ exp of logits below this, of any vocabulary, is a float32 number; so is 1 / Σ exp above its negative
BLOCK = 1 << 18  # numbers that are normalized at a time: a megabyte
# Of a probability whose logarithm is taken: a normal number, since a process may flush denormal ones to zero.
SMALLEST = np.finfo(np.float32).tiny
CLIPPED = 60.0  # above this, Paddle's cross entropy on a CPU may have been clipped (at 64)


def full_precision(logits: Tensor) -> Tensor:
    """Logits of half precision as float32; others as they are."""
    return logits if logits.dtype in (paddle.float32, paddle.float64) else logits.astype("float32")


def log_sum_exp(logits: Tensor) -> Tensor:
    """log Σ exp of logits float32 [B, T, V] → [B, T, 1].

    On a CPU the sum is a matrix product: Paddle's own takes five times as long, and its log_softmax there is wrong
    where a logit lies more than 64 below the largest.
    """
    if not algebra.by_products(logits):
        return paddle.logsumexp(logits, -1, keepdim=True)
    rows = logits.reshape([-1, logits.shape[-1]])  # [B, T, V] -> [N, V]
    best = algebra.largest(rows)  # [N, 1]
    if float(best.abs().max()) < SAFE:  # exp of all neither overflows nor vanishes: a pass less
        total = paddle.log(paddle.matmul(paddle.exp(rows), _column(rows)))
    else:
        shifted = algebra.add_outer(rows, -best, algebra.row_of_ones(rows))
        total = best + paddle.log(paddle.matmul(paddle.exp(shifted), _column(rows)))
    return total.reshape([*logits.shape[:-1], 1])


def log_softmax(logits: Tensor) -> Tensor:
    """log softmax of logits float32 [B, T, V] over V."""
    rows = logits.reshape([-1, logits.shape[-1]])  # [B, T, V] -> [N, V]
    total = log_sum_exp(logits).reshape([-1, 1])
    return algebra.add_outer(rows, -total, algebra.row_of_ones(rows)).reshape(logits.shape)


def log_softmax_(logits: Tensor) -> Tensor:
    """`log_softmax`, for which the caller gives `logits` away: without gradients on a CPU, it lies where they were.

    Some rows at a time, so that they stay in the cache between the passes.
    """
    if paddle.is_grad_enabled() or not algebra.by_products(logits):
        return log_softmax(logits)
    array = np.from_dlpack(logits)
    rows = array.reshape(-1, array.shape[-1])  # a view
    step = max(1, BLOCK // rows.shape[1])
    scratch = np.empty((min(step, len(rows)), rows.shape[1]), rows.dtype)
    for first in range(0, len(rows), step):
        block = rows[first : first + step]
        exp = scratch[: len(block)]
        if block.max() < SAFE and block.min() > -SAFE:  # exp of all neither overflows nor vanishes: a pass less
            total = np.log(np.exp(block, out=exp).sum(1, keepdims=True))
        else:
            best = block.max(1, keepdims=True)
            np.exp(np.subtract(block, best, out=exp), out=exp)
            total = best + np.log(exp.sum(1, keepdims=True))
        block -= total
    return logits


def _column(rows: Tensor) -> Tensor:
    """Ones [V, 1]."""
    return paddle.ones([rows.shape[1], 1], rows.dtype)


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
    """−log p_target [N]: the fused cross entropy, mended where it is clipped (its gradient is not). The softmax takes
    the place of the logits, so that [N, V] is held once; those that are computed already may be given away to it."""
    logits, target = full_precision(project(h)) if logits is None else logits, target.unsqueeze(-1)
    if kernels.usable(logits):
        loss = fused.apply(_NegativeLog(target), logits)
    else:
        loss = paddle_compat.cross_entropy_(logits, target).squeeze(-1)  # [N, 1] -> [N]
    if not place.on_cpu(loss) or float(loss.detach().max()) < CLIPPED:
        return loss
    with paddle.no_grad():
        logits = full_precision(project(h))
        exact = log_sum_exp(logits) - paddle.take_along_axis(logits, target, -1, broadcast=False)
        mended = exact.squeeze(-1) - loss
    return loss + mended


class _NegativeLog(fused.Function):
    """−log softmax(logits)[target] [N] of logits [N, V], in their place, by oneDNN: a quarter of the time of Paddle's.

    Below e⁻⁸⁷ a probability is not told from 0: the caller mends what is beyond `CLIPPED`.
    """

    def __init__(self, target: Tensor):
        self.target = target.numpy().reshape([-1])

    def forward(self, *inputs: Tensor) -> Tensor:
        (logits,) = inputs
        self.softmax = logits.detach().contiguous()
        (number, width), start = self.softmax.shape, address(self.softmax)
        operand = start, 4 * width
        kernels.in_pieces(lambda rows: kernels.softmax(rows, width), number, [operand, operand])
        of_target = np.from_dlpack(self.softmax)[np.arange(number), self.target]
        return paddle.to_tensor(-np.log(np.maximum(of_target, SMALLEST)))

    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        of_logits = self.softmax
        array, factor = np.from_dlpack(of_logits), gradient.numpy()
        array *= factor[:, None]
        array[np.arange(len(array)), self.target] -= factor
        return [of_logits]
