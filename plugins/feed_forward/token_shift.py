"""RWKV's channel mixing: each token with the one before it, behind a gate."""

from __future__ import annotations

import numpy as np
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm.layers import Linear
from paddle_tfm.protocols import FeedForward, LayerSite, Tap, TokenInfo


class TokenShift(FeedForward):
    """RWKV's channel mixing: each token with the one before it, behind a gate (Peng 2023, arXiv:2305.13048).

    out_t = σ(r_t) ⊙ (max(0, k_t)² W_v) with r_t = (μ_r ⊙ x_t + (1 − μ_r) ⊙ x_{t−1}) W_r, k_t = (μ_k ⊙ x_t + (1 − μ_k) ⊙
    x_{t−1}) W_k. What is padding, or before the first token, counts as zero. Both μ [C] are trained, and start at
    (c / C)^{1 − l / L} for channel c = 0 … C − 1 in layer l = 0 … L − 1, as in the authors' code. While decoding, the
    engine keeps the last input.

    x [B, T, C] → [B, T, C]; k [B, T, d_ff].
    """

    reach = 1

    def __init__(self, d_model: int, d_ff: int, site: LayerSite | None = None):
        super().__init__()
        self.receptance = Linear(d_model, d_model, bias=False)
        self.key = Linear(d_model, d_ff, bias=False)
        self.value = Linear(d_ff, d_model, bias=False)
        height = 0.0 if site is None else site.layer / site.depth
        start = nn.initializer.Assign((np.arange(d_model) / d_model) ** (1 - height))
        self.mix_receptance = self.create_parameter([d_model], default_initializer=start)
        self.mix_key = self.create_parameter([d_model], default_initializer=start)

    def forward(self, x: Tensor, info: TokenInfo, tap: Tap) -> Tensor:
        before = info.window(x, 1)[:, :-1]  # [B, T, C]: of each token the one before it
        receptance = self.receptance(before + self.mix_receptance * (x - before))
        key = F.relu(self.key(before + self.mix_key * (x - before)))  # [B, T, d_ff]
        return F.sigmoid(receptance) * self.value(key * key)

    def branch_weights(self) -> list[Tensor]:
        return [self.key.weight, self.value.weight]
