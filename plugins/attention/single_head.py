"""One head without an output projection, as the small GPT of video lectures has it."""

from __future__ import annotations

from paddle import Tensor

from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import Attention, Geometry, KeyValue, Mask, Tap, TokenInfo
from paddle_tfm.validators import matrix_side
from paddle_tfm_plugins.attention._dot_product import attend


class SingleHead(Attention):
    """One head and no output projection: softmax(q kᵀ / sqrt(D)) v (Vaswani 2017, arXiv:1706.03762, equation 1).

    q and k are D wide; v is as wide as the model, so that the result can be added to the residual as it is, whatever D.
    Scores may be rotated or biased; terms added to the values are refused, for those are D wide. Placements with an
    inner norm are refused: there is no output projection to stand before.

    x [B, T, C], source [B, S, C] → [B, T, C]; keys [B, 1, S, D], values [B, 1, S, C].

    Options:
        head_size: D; None: d_model.
        bias: whether the three projections have one.

    Raises:
        ValueError: head_size is below 1 or above 65,536.
    """

    supports = frozenset({"embed", "rotate", "bias", "scores"})

    def __init__(self, d_model: int, dropout: float, head_size: int | None = None, bias: bool = False):
        super().__init__()
        matrix_side(head_size=head_size)
        width = d_model if head_size is None else head_size
        self.query = Linear(d_model, width, bias)
        self.key = Linear(d_model, width, bias)
        self.value = Linear(d_model, d_model, bias)
        self.dropout = Dropout(dropout)

    @classmethod
    def geometry(cls, d_model: int, num_heads: int, head_size: int | None = None, **options: object) -> Geometry:
        return Geometry(1, 1, head_size or d_model)

    def project(self, source: Tensor, info: TokenInfo) -> KeyValue:
        key = self.key(source).unsqueeze(1)  # [B, S, D] -> [B, 1, S, D]
        return KeyValue(info.encoding.key(key, info.positions), self.value(source).unsqueeze(1))

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        q = self.query(x).unsqueeze(1)  # [B, T, D] -> [B, 1, T, D]
        return attend(q, kv, info, mask, self.dropout, tap).squeeze(1)  # [B, 1, T, C] -> [B, T, C]

    def branch_weights(self) -> list[Tensor]:
        return [self.value.weight]
