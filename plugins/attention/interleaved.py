"""Local attention in most layers, and attention to everything in some."""

from __future__ import annotations

from paddle import Tensor

from paddle_tfm.protocols import KeyValue, LayerSite, Mask, Tap, TokenInfo
from paddle_tfm.validators import at_least
from paddle_tfm_plugins.attention.local import Local
from paddle_tfm_plugins.attention.multihead import MultiHead


class Interleaved(Local):
    """Interleaved local and global attention: every n-th layer sees all, others a window (Gemma 2, arXiv:2408.00118).

    Layer l = 0, 1, … of a stack is `multihead` where l + 1 is a multiple of `every`, and `local` elsewhere, so that the
    lowest layer is local. `every` 2 is Gemma 2 (the paper above; a window of 4,096), 6 is Gemma 3 (arXiv:2503.19786;
    1,024). With `every` above the number of layers, none is global.

    Gemma 3 also rotates in its global layers at a base of its own (1,000,000 for 10,000): here all layers share the
    stack's encoding. And as in `local` this is the pattern and not its saving.

    x [B, T, C], source [B, S, C] → [B, T, C]; keys and values [B, H, S, D].

    Options:
        every: n; layers n, 2 n, … from the bottom are global.
        window: how many positions are seen on each side in the others.
        bias: whether the four projections have one.
        head_dim: D; None: d_model / num_heads.

    Raises:
        ValueError: every is below 1; what `local` raises.
    """

    def __init__(self, *, site: LayerSite | None = None, every: int = 2, **parent):
        super().__init__(site=site, **parent)
        at_least(1, every=every)
        self.is_global = ((0 if site is None else site.layer) + 1) % every == 0

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        of_layer = MultiHead if self.is_global else Local
        return of_layer.forward(self, x, kv, info, mask, tap)
