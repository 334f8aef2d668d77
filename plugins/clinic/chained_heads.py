"""Attention heads in series."""

from __future__ import annotations

from typing import ClassVar

import paddle
from paddle import Tensor

from paddle_tfm.protocols import KeyValue, Mask, Tap, TokenInfo
from paddle_tfm_plugins.attention._dot_product import attend
from paddle_tfm_plugins.attention.multihead import MultiHead


class ChainedHeads(MultiHead):
    """Wrong on purpose: the output of each head is added to the query of the next, as a loop over heads easily does.

    Symptom: on an easy task none. The later heads attend with the output of the earlier ones as well as with the
    token's own query; every head should have the same input. x [B, T, C] → [B, T, C].
    """

    supports = frozenset({"embed"})
    expected_failures: ClassVar[dict[str, str]] = {
        "values": "the mistake: the output of a head changes the query of the next one"
    }

    def __init__(self, d_model: int, num_heads: int, dropout: float):
        super().__init__(d_model, num_heads, dropout)

    def heads(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        queries = self.queries(x)
        outputs, q = [], 0.0
        for head in range(self.num_heads):
            q = queries[:, head : head + 1] + q
            head_kv = KeyValue(kv.key[:, head : head + 1], kv.value[:, head : head + 1])
            q = attend(q, head_kv, info, mask, self.dropout, tap)
            outputs.append(q)
        return paddle.concat(outputs, 1)
