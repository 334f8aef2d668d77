"""The position-wise sublayer."""

from __future__ import annotations

from typing import ClassVar

from paddle import Tensor, nn

from paddle_tfm.protocols.component import Component
from paddle_tfm.protocols.context import TokenInfo
from paddle_tfm.protocols.tap import Tap


class FeedForward(Component, nn.Layer):
    """The position-wise sublayer, [B, T, C] → [B, T, C]. Givens: d_model, d_ff, dropout, site, inner_norm."""

    kind: ClassVar[str] = "feed_forward"
    givens = frozenset({"d_model", "d_ff", "dropout", "site", "inner_norm"})
    settable = frozenset({"d_ff", "dropout"})

    def forward(self, x: Tensor, info: TokenInfo, tap: Tap) -> Tensor:
        raise NotImplementedError

    def branch_weights(self) -> list[Tensor]:
        """The weights that DeepNorm scales."""
        return []
