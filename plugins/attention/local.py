"""Attention to what stands near."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import paddle
from paddle import Tensor

from paddle_tfm.protocols import KeyValue, LayerSite, Mask, Tap, TokenInfo
from paddle_tfm_plugins.attention.multihead import MultiHead


class Near(Mask):
    """A mask that also hides each key whose position is more than `window` away from the query's."""

    def __init__(self, mask: Mask, window: int):
        super().__init__(mask.q_positions, mask.k_positions, mask.k_valid, mask.causal, mask.encoding)
        self.window = window

    def allowed(self) -> Tensor:
        if "near" not in self._hidden:
            apart = self.q_positions.unsqueeze(2) - self.k_positions.unsqueeze(1)  # [B|1, Tq, Tk]
            near = (apart.abs() <= self.window).unsqueeze(1)
            self._hidden["near"] = paddle.logical_and(super().allowed(), near)
        return self._hidden["near"]


# A pass has one mask for all layers that share an encoding: narrowed once too, and gone with it.
_narrowed: WeakKeyDictionary[Mask, dict[int, Near]] = WeakKeyDictionary()


def narrow(mask: Mask, window: int) -> Near:
    """`mask` within `window` positions of the query; the same object for the same mask and window."""
    made = _narrowed.setdefault(mask, {})
    if window not in made:
        made[window] = Near(mask, window)
    return made[window]


class Local(MultiHead):
    """Local attention: a position sees those at most `window` positions away (Beltagy 2020, arXiv:2004.05150).

    `multihead` with the weights of all keys j hidden for which |i − j| > window: a sliding window over `window`
    positions on each side, only the past one where attention is causal. i and j are positions, not places in a batch; a
    query always sees itself. (The paper's w counts both sides: w / 2 is `window`.) After L layers a position has heard
    from L · window away.

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
            raise ValueError("a window needs one text: positions of source and target have no distance")
        if window < 1:
            raise ValueError(f"`window` must be at least 1, but is {window}")
        self.window = window

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        return super().forward(x, kv, info, narrow(mask, self.window), tap)
