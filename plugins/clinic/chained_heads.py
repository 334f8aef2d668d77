"""Heads one after another."""

from __future__ import annotations

from typing import ClassVar

import paddle
from paddle import Tensor

from paddle_tfm.protocols import KeyValue, Mask, Tap, TokenInfo
from paddle_tfm_plugins.attention._dot_product import attend, merge_heads, split_heads
from paddle_tfm_plugins.attention.multihead import MultiHead


class ChainedHeads(MultiHead):
    """Wrong on purpose: the query of each head is what the head before it found, as a loop over heads easily does.

    Symptom: on an easy task none. The later heads search for what the earlier ones found as well as for what the token asks
    for; every head should get the same input. x [B, T, C] → [B, T, C].
    """

    supports = frozenset({"embed"})
    expected_failures: ClassVar[dict[str, str]] = {
        "values": "the mistake: what a head finds decides what the next one looks for"
    }

    def __init__(self, d_model: int, num_heads: int, dropout: float):
        super().__init__(d_model, num_heads, dropout)

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        queries = split_heads(self.query(x), self.num_heads)  # [B, H, T, D]
        found, q = [], 0.0
        for head in range(self.num_heads):
            q = queries[:, head : head + 1] + q
            one = KeyValue(kv.key[:, head : head + 1], kv.value[:, head : head + 1])
            q = attend(q, one, info, mask, self.dropout, tap)
            found.append(q)
        return self.output(merge_heads(paddle.concat(found, 1)))
