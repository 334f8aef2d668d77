"""Attention without what a token says of itself."""

from __future__ import annotations

from paddle import Tensor

from paddle_tfm.language import _
from paddle_tfm.ops import unit
from paddle_tfm.protocols import KeyValue, LayerSite, Mask, Tap, TokenInfo
from paddle_tfm.validators import at_least
from paddle_tfm_plugins.attention.multihead import MultiHead


class Exclusive(MultiHead):
    """Exclusive self-attention: a head gives nothing along its token's own value (Zhai 2026, arXiv:2603.09078).

    z_h = y_h − (y_h · v̂_h) v̂_h with y_h = head_h of `multihead` at a token, v_h the value of that token and v̂ = v / |v|
    over the channels of a head; out = [z_1 … z_H] W_o. So attention gathers what the others say; what the token itself
    says, the residual carries. There are no parameters beyond those of `multihead`. The first token of a decoder sees
    itself alone, and gets zeros.

    It supports all positional-encoding hooks. Dropout is applied to the attention weights.

    x [B, T, C] → [B, T, C]; keys and values [B, H, S, D].

    Options:
        bias: whether the four projections have one.
        head_dim: D; None: d_model / num_heads.

    Raises:
        ValueError: in cross-attention, whose values are another text's; a head has one channel; what `multihead`
            raises.
    """

    expected_failures = {"values": "the direction that is taken out is that of a value"}

    def __init__(self, *, site: LayerSite | None = None, **parent):
        super().__init__(**parent)
        at_least(2, head_dim=self.value.weight.shape[1] // self.num_heads)  # of one channel nothing would be left
        if site is not None and site.sublayer == "cross":
            raise ValueError(
                _("it takes a token's own value out, and in cross-attention all values are another text's")
            )

    def heads(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        y = super().heads(x, kv, info, mask, tap)
        own = unit(kv.value[:, :, -x.shape[1] :])  # the newest tokens are those of x: [B, H, T, D]
        return y - (y * own).sum(-1, keepdim=True) * own
