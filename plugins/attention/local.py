"""Attention within a window of positions."""

from __future__ import annotations

from paddle import Tensor

from paddle_tfm.language import _
from paddle_tfm.protocols import KeyValue, LayerSite, Mask, Tap, TokenInfo
from paddle_tfm.validators import at_least
from paddle_tfm_plugins.attention.multihead import MultiHead


class Local(MultiHead):
    """Local attention: a position sees those at most `window` positions away (Beltagy 2020, arXiv:2004.05150).

    `multihead` with the weights of all keys j hidden for which |i − j| > window: a sliding window over `window`
    positions on each side, only the past one where attention is causal. i and j are positions, not places in a batch; a
    query always sees itself. (The paper's w counts both sides: w / 2 is `window`.) After L layers the receptive field
    reaches L · window positions.

    This is the pattern of the paper and not its saving: the scores of all pairs are computed and the cache holds all
    keys. There are no tokens with global attention and no dilation.

    x [B, T, C], source [B, S, C] → [B, T, C]; keys and values [B, H, S, D].

    Options:
        window: how many positions are seen on each side.
        bias: whether the four projections have one.
        head_dim: D; None: d_model / num_heads.

    Raises:
        ValueError: in cross-attention, where positions of two texts have no distance; window is below 1; what
            `multihead` raises.
    """

    def __init__(self, *, site: LayerSite | None = None, window: int = 16, **parent):
        super().__init__(**parent)
        if site is not None and site.sublayer == "cross":
            raise ValueError(_("a window needs one text: positions of source and target have no distance"))
        at_least(1, window=window)
        self.window = window

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        near = mask.restricted(("window", self.window), lambda q, k: (q - k).abs() <= self.window)
        return super().forward(x, kv, info, near, tap)
