"""The softmax over words on a CPU: its logarithm, and the loss."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import ops, place
from paddle_tfm.kernels import Call, function
from paddle_tfm.kernels.cpu import row_kernels
from paddle_tfm.protocols import Kernel

SAFE = 60.0  # Σ exp of logits below this, of any vocabulary, is a float32 number; so is 1 / Σ exp above its negative
BLOCK = 1 << 18  # numbers that are normalized at a time: a megabyte
# Of a probability whose logarithm is taken: a normal number, since a process may flush denormal ones to zero.
SMALLEST = np.finfo(np.float32).tiny


class LogSumExpByProduct(Kernel):
    """The sum as a matrix product: Paddle's own takes five times as long on a CPU."""

    of = ops.log_sum_exp
    device = "cpu"

    def fits(self, call: Call) -> bool:
        (rows,) = call.args
        return place.on_cpu(rows) and 0 not in rows.shape

    def run(self, call: Call) -> Tensor:
        (rows,) = call.args
        ones = paddle.ones([rows.shape[1], 1], rows.dtype)
        best = paddle.to_tensor(np.from_dlpack(rows.detach()).max(1, keepdims=True))  # [N, 1]; six times as fast
        if float(best.abs().max()) < SAFE:  # exp of all neither overflows nor vanishes: a pass less
            return paddle.log(paddle.matmul(paddle.exp(rows), ones))
        shifted = paddle.addmm(rows, -best, ones.reshape([1, -1]))  # [V, 1] -> [1, V]
        return best + paddle.log(paddle.matmul(paddle.exp(shifted), ones))


class LogSoftmaxInPlace(Kernel):
    """Without gradients, where the logits were, some rows at a time, so that they stay in the cache between passes."""

    of = ops.log_softmax_
    device = "cpu"

    def fits(self, call: Call) -> bool:
        (rows,) = call.args
        return not paddle.is_grad_enabled() and place.on_cpu(rows) and 0 not in rows.shape

    def run(self, call: Call) -> Tensor:
        (logits,) = call.args
        rows = np.from_dlpack(logits)
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


class SoftmaxNLL(Kernel):
    """The loss in the place of the logits, so that [N, V] is held once, by oneDNN: a quarter of the time of Paddle's.

    Below e⁻⁸⁷ a probability is not told from 0.
    """

    of = ops.softmax_nll
    device = "cpu"

    def fits(self, call: Call) -> bool:
        rows, _ = call.args
        return call.mode.phase == "step" and 0 not in rows.shape and row_kernels.usable(rows)

    def run(self, call: Call) -> Tensor:
        rows, target = call.args
        return function.apply(_NegativeLog(target), rows)


class _NegativeLog(function.Function):
    def __init__(self, target: Tensor):
        self.target = target.numpy()

    def forward(self, *inputs: Tensor) -> Tensor:
        (logits,) = inputs
        self.softmax = logits.detach().contiguous()
        row_kernels.softmax_in_place(self.softmax)
        of_target = np.from_dlpack(self.softmax)[np.arange(len(self.target)), self.target]
        return paddle.to_tensor(-np.log(np.maximum(of_target, SMALLEST)))

    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        of_logits = self.softmax
        array, factor = np.from_dlpack(of_logits), gradient.numpy()
        array *= factor[:, None]
        array[np.arange(len(array)), self.target] -= factor
        return [of_logits]
