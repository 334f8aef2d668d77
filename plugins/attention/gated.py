"""Attention whose output passes a gate."""

from __future__ import annotations

import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm.layers import Linear
from paddle_tfm.protocols import KeyValue, Mask, Tap, TokenInfo
from paddle_tfm_plugins.attention._dot_product import merge_heads, project_out
from paddle_tfm_plugins.attention.multihead import MultiHead


class Gated(MultiHead):
    """Gated attention: a sigmoid of the input gates each channel of each head (Qiu 2025, arXiv:2505.06708).

    out = ([head_1 … head_H] ⊗ σ(x W_g)) W_o, the heads those of `multihead` and x the input that the queries are made
    of: a position can take little from what it attends to although its weights sum to 1. W_g [C, H·D] makes a fifth
    matrix of C² numbers where `multihead` has four; with `per_head` (the authors' head-wise form) W_g is [C, H], and a
    head's channels share their gate. A norm that the placement has before W_o comes after the gate.

    It supports all positional-encoding hooks. Dropout is applied to the attention weights.

    x [B, T, C], source [B, S, C] → [B, T, C]; keys and values [B, H, S, D].

    Options:
        bias: whether the five projections have one; the authors' have none.
        per_head: whether a head has one gate; False: each of its channels has.
        head_dim: D; None: d_model / num_heads.

    Raises:
        ValueError: as `multihead`.
    """

    expected_failures = {"averages": "the mean of the values is multiplied by a gate in (0, 1)"}

    def __init__(self, *, d_model: int, bias: bool = False, per_head: bool = False, **parent):
        super().__init__(d_model=d_model, bias=bias, **parent)
        self.gate = Linear(d_model, self.num_heads if per_head else self.query.weight.shape[1], bias)

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        context = merge_heads(self.heads(x, kv, info, mask, tap))  # [B, T, H·D]
        return project_out(context * self.gates(x), info, self.inner_norm, self.output)

    def gates(self, x: Tensor) -> Tensor:
        """x [B, T, C] → a number in (0, 1) for each channel of the heads side by side [B, T, H·D]."""
        gates = F.sigmoid(self.gate(x))  # [B, T, H·D], or [B, T, H]
        channels = self.query.weight.shape[1]
        return gates if gates.shape[-1] == channels else gates.repeat_interleave(channels // gates.shape[-1], -1)
