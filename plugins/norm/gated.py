"""RMS normalization, and a gate behind it."""

from __future__ import annotations

import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm import ops
from paddle_tfm.layers import Linear
from paddle_tfm.protocols import maps_as
from paddle_tfm.validators import matrix_side
from paddle_tfm_plugins.norm.rms import RMSNorm


class GatedNorm(RMSNorm):
    """Gated norm: what `rms` gives passes a gate of low rank that it makes itself (Qiu 2026, arXiv:2601.22966).

    y = n ⊙ σ(swish(n W_down) W_up), n = x / sqrt(mean(x²) + eps) · weight, W_down [C, r] and W_up [r, C]: a token can
    make each channel smaller, where networks otherwise grow a few very large channels for that purpose. As initialized
    the gates are about 1/2. x [B, T, C] → [B, T, C]; `valid` and `positions` do not matter.

    Options: `rank` is r. `eps` is added to the mean square.

    Raises:
        ValueError: `eps` is not positive; `rank` is below 1 or above 65,536.
    """

    def __init__(self, d_model: int, rank: int = 16, eps: float = 1e-6):
        super().__init__(d_model, eps)
        matrix_side(rank=rank)
        self.down, self.up = Linear(d_model, rank, bias=False), Linear(rank, d_model, bias=False)
        maps_as(self.down.weight, "output")
        maps_as(self.up.weight, "input")

    def forward(self, x: Tensor, valid: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        n = super().forward(x, valid, positions)
        return n * F.sigmoid(self.up(ops.silu(self.down(n))))
