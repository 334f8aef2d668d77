"""Projections in a plain list."""

from __future__ import annotations

from typing import ClassVar

from paddle import Tensor

from paddle_tfm.protocols import KeyValue, TokenInfo
from paddle_tfm_plugins.attention._dot_product import split_heads
from paddle_tfm_plugins.attention.multihead import MultiHead


class PlainList(MultiHead):
    """Wrong on purpose: the projections of `multihead` in a plain list, so that the optimizer does not know them.

    Symptom: it learns, but slowly and not to the end: queries, keys and values stay at their initial values. A
    `nn.LayerList`, or an attribute for each, would register them. x [B, T, C] → [B, T, C].
    """

    expected_failures: ClassVar[dict[str, str]] = {
        "registered": "the mistake: a plain list registers nothing",
        "saved": "what is not registered is not in a checkpoint, nor in what a resumed training continues from",
    }

    def __init__(self, d_model: int, num_heads: int, dropout: float):
        super().__init__(d_model, num_heads, dropout)
        self.projections = [self.query, self.key, self.value]
        del self.query, self.key, self.value

    def project(self, source: Tensor, info: TokenInfo) -> KeyValue:
        _, key, value = (split_heads(projection(source), self.num_heads) for projection in self.projections)
        return KeyValue(info.encoding.key(key, info.positions), value)

    def queries(self, x: Tensor) -> Tensor:
        return split_heads(self.projections[0](x), self.num_heads)

    def branch_weights(self) -> list[Tensor]:
        return [self.output.weight]
