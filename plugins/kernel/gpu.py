"""Kernels for a GPU, by Paddle's own. Compared with their formulas on a CPU where Paddle computes them there; on a GPU
unverified."""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm.kernels import Call
from paddle_tfm.protocols import Kernel
from paddle_tfm_plugins.attention._dot_product import attend
from paddle_tfm_plugins.kernel._attend import nothing_between
from paddle_tfm_plugins.norm.rms import RMSNorm


class AttendByPaddle(Kernel):
    """Attention without the matrix of weights, where the GPU has it: no term of the
    encoding but a bias that is not learned, a scale that is a number."""

    of = attend
    device = "gpu"
    draws = "own"

    def fits(self, call: Call) -> bool:
        return nothing_between(call)

    def run(self, call: Call) -> Tensor:
        q, kv, info, mask, dropout, _, scale = call.args
        rate = dropout.rate if dropout.training else 0.0
        if rate:
            dropout.seed_paddle()
        heads = (x.transpose([0, 2, 1, 3]) for x in (info.encoding.query(q, info.positions), kv.key, kv.value))
        scale = q.shape[-1] ** -0.5 if scale is None else scale  # of the width before the encoding
        batch, number, queries, keys = *q.shape[:3], kv.key.shape[2]
        dense = mask.dense(q.dtype).expand([batch, number, queries, keys])
        context = F.scaled_dot_product_attention(*heads, dense, rate, training=rate > 0.0, scale=scale)
        return context.transpose([0, 2, 1, 3])  # [B, T, H, D] -> [B, H, T, D]


class RMSNormByPaddle(Kernel):
    """Root mean square and scale in one pass."""

    of = RMSNorm
    device = "gpu"

    def fits(self, call: Call) -> bool:
        return call.args[0].dtype == paddle.float32

    def run(self, call: Call) -> Tensor:
        x, norm = call.args[0], call.layer
        return F.rms_norm(x, x.shape[-1:], norm.weight, norm.eps)[0]
