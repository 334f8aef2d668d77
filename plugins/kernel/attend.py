"""Attention from queries, keys and values in a training step as one function."""

from __future__ import annotations

from paddle import Tensor

from paddle_tfm.kernels import Call, function
from paddle_tfm.kernels.cpu import row_kernels
from paddle_tfm.protocols import Kernel
from paddle_tfm_plugins.attention._dot_product import attend
from paddle_tfm_plugins.kernel._attend import Attend, Weights, nothing_between


class AttendAsOne(Kernel):
    """Scores, mask, softmax, dropout and the sum of values as one function: heads with keys of their own, no term of
    the encoding but a bias that is not learned, a scale that is a number."""

    of = attend
    device = "cpu"

    def fits(self, call: Call) -> bool:
        q, kv = call.args[:2]
        if call.mode.phase != "step" or q.shape[1] != kv.key.shape[1]:
            return False
        return row_kernels.usable(q, kv.key, kv.value) and nothing_between(call)

    def run(self, call: Call) -> Tensor:
        q, kv, info, mask, dropout, _, scale = call.args
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        q = info.encoding.query(q, info.positions)
        draw = call.draw(dropout, q.shape[0] * q.shape[1] * q.shape[2] * kv.key.shape[2])
        weights = Weights(mask.dense("float32"), draw, dropout.factor)
        return function.apply(Attend(weights, scale), q, kv.key, kv.value)
