"""Attention scores that are not scaled."""

from __future__ import annotations

from typing import ClassVar

from paddle import Tensor

from paddle_tfm_plugins.attention.multihead import MultiHead


class NoScale(MultiHead):
    """Wrong on purpose: scores are not divided by sqrt(head_dim), so that softmax saturates.

    Symptom: training starts slowly, the more so the wider a head is: hardly any gradient flows through a saturated
    softmax (Vaswani 2017, arXiv:1706.03762, section 3.2.1). x [B, T, C] → [B, T, C].
    """

    expected_failures: ClassVar[dict[str, str]] = {"temperature": "the mistake: scores grow with the width of a head"}

    def __init__(self, d_model: int, num_heads: int, dropout: float):
        super().__init__(d_model, num_heads, dropout)

    def queries(self, x: Tensor) -> Tensor:
        q = super().queries(x)
        return q * q.shape[-1] ** 0.5  # undoes the division in `attend`
