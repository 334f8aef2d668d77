"""A memory that is corrected, each channel of which forgets at a rate of its own."""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm.layers import Linear
from paddle_tfm_plugins.attention.gated_deltanet import GatedDeltaNet

CHUNK = 16  # tokens that are read at once: [B, H, 16, 16, D] numbers


class KimiDelta(GatedDeltaNet):
    """Kimi delta attention: Gated DeltaNet with a decay for each channel (Kimi Team 2025, arXiv:2510.26692).

    S_t = (I − β_t k_t k_tᵀ) Diag(α_t) S_{t−1} + β_t k_t v_tᵀ [D, V] of each head, o_t = S_tᵀ q_t / sqrt(D). α_t in
    (0, 1)^D says for each channel of the key how much of the memory it keeps, where `gated_deltanet` has one number for
    a head: α_t = exp(−exp(a) softplus(x_t W_f W_F + b)), a for each head, b for each channel, W_f [C, D];
    out = [RMSNorm(o_h) ⊙ σ(x W_g W_G + c)_h] W_o, W_g [C, D]. exp(a) starts in U(1, 16). All as in the authors' layer
    (fla-org/flash-linear-attention, layers/kda.py); q, k, v, β and the rest are those of `gated_deltanet`.

    The ratio γ_t / γ_i of two tokens is a vector here, so that CHUNK tokens are read at once, and the memory goes from
    one chunk to the next: time grows with T.

    x [B, T, C], source [B, T, C] → [B, T, C].

    Options:
        head_dim: D; None: d_model / num_heads.
        expand: V / D.
        kernel: K, the tokens that a convolution reaches.

    Raises:
        ValueError: as `gated_deltanet`.
    """

    squash = staticmethod(F.sigmoid)

    def __init__(self, d_model: int, num_heads: int, expand: int = 1, **parent):
        super().__init__(d_model=d_model, num_heads=num_heads, expand=expand, **parent)
        keys, _, values = self.widths
        self.fade = nn.Sequential(Linear(d_model, self.head_dim, False), Linear(self.head_dim, keys, False))
        self._start_fading(keys, 1.0)
        self.gate = nn.Sequential(Linear(d_model, self.head_dim, False), Linear(self.head_dim, values))

    def recall(
        self, q: Tensor, k: Tensor, v: Tensor, log_alpha: Tensor, beta: Tensor, memory: Tensor
    ) -> tuple[Tensor, Tensor]:
        answers = []
        for start in range(0, q.shape[2], CHUNK):
            chunk = (each[:, :, start : start + CHUNK] for each in (q, k, v, log_alpha, beta))
            some, memory = super().recall(*chunk, memory)
            answers.append(some)
        return paddle.concat(answers, 2), memory

    def products(self, q: Tensor, k: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        """Σ_c (γ_t / γ_i)_c q_tc k_ic, and the same of k_t, of log γ = `total` [B, H, T, D] → [B, H, T, T]."""
        faded = paddle.exp((total.unsqueeze(3) - total.unsqueeze(2)).clip(max=0.0)) * k.unsqueeze(2)  # [B, H, T, T, D]
        both = paddle.matmul(faded, paddle.stack([q, k], -1))  # of [B, H, T, D, 2] → [B, H, T, T, 2]
        return both[..., 0], both[..., 1]
