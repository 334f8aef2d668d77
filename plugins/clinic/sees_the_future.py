"""No causal mask."""

from __future__ import annotations

from typing import ClassVar

from paddle import Tensor

from paddle_tfm.protocols import KeyValue, Mask, Tap, TokenInfo
from paddle_tfm_plugins.attention.multihead import MultiHead


class SeesTheFuture(MultiHead):
    """Wrong on purpose: the mask hides padding and not the future, so that training shows the decoder its targets.

    Symptom: a training loss near zero within minutes, a validation loss near zero too, and outputs that are nonsense:
    during generation there is no future to copy from. x [B, T, C] → [B, T, C].
    """

    expected_failures: ClassVar[dict[str, str]] = {
        "causal": "the mistake: later positions are attended to",
        "causal_in_training": "the mistake: later positions are attended to",
        "cached": "while decoding there is no later position to attend to",
        "beams": "while decoding there is no later position to attend to",
    }

    def __init__(self, d_model: int, num_heads: int, dropout: float):
        super().__init__(d_model, num_heads, dropout)

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        padding_only = Mask(mask.q_positions, mask.k_positions, mask.k_valid, causal=False, encoding=mask.encoding)
        return super().forward(x, kv, info, padding_only, tap)
