"""Multi-head attention whose input each token mixes with the tokens before it."""

from __future__ import annotations

from typing import ClassVar

from paddle import Tensor

from paddle_tfm.language import _
from paddle_tfm.protocols import KeyValue, LayerSite, Mask, Tap, TokenInfo
from paddle_tfm_plugins.attention.multihead import MultiHead
from paddle_tfm_plugins.feed_forward.canon import CanonLayer


class Canon(MultiHead):
    """Canon-A: a short causal convolution before multi-head self-attention (Allen-Zhu 2025, arXiv:2512.17351).

    As `multihead` of h', h'_t = h_t + Σ_j w_j ⊙ h_{t−j}, j = 0 … K − 1: queries, keys and values read a token and the
    K − 1 before it, in an encoder too. What is padding, or before the first token, counts as zero. h is the sublayer's
    input, after the norm where the placement has it there. While decoding, the engine keeps the last K − 1 inputs.
    Canon-C is feed-forward `canon`.

    x [B, T, C] → [B, T, C]; keys and values [B, H, S, D].

    Options:
        kernel: K (the paper: 4). Others: those of `multihead`.

    Raises:
        ValueError: in cross-attention; kernel is not in [2, 65536]; what `multihead` raises.
    """

    expected_failures: ClassVar[dict[str, str]] = {
        "bidirectional": "the convolution mixes a token with those before it, not with those after it"
    }

    def __init__(self, *, d_model: int, site: LayerSite | None = None, kernel: int = 4, **parent):
        super().__init__(d_model=d_model, **parent)
        if site is not None and site.sublayer == "cross":
            raise ValueError(_("in cross-attention queries and keys are two texts; choose it for self-attention alone"))
        self.canon = CanonLayer(d_model, kernel)
        self.reach = self.canon.reach

    def project(self, source: Tensor, info: TokenInfo) -> KeyValue:
        return super().project(self.canon(source, info), info)

    def forward(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        return super().forward(self.canon(x, info), kv, info, mask, tap)
