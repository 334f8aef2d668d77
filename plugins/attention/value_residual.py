"""Attention whose values are mixed with those of the stack's first layer."""

from __future__ import annotations

from paddle import Tensor, nn

from paddle_tfm.language import _
from paddle_tfm.protocols import KeyValue, LayerSite, TokenInfo
from paddle_tfm_plugins.attention.multihead import MultiHead

FIRST = "values of the first layer"  # under which they are shared in a pass


class ValueResidual(MultiHead):
    """Value residual (ResFormer): values are mixed with those of the first layer (Zhou 2024, arXiv:2410.17897).

    V'_n = λ₁ V_1 + λ₂ V_n in the n-th layer of a stack, n > 1, with V_1 what the first layer's W_v gives for the same
    tokens; all else is `multihead`. So what a token was at the bottom reaches every layer. Each pass shares V_1 among
    its layers (`TokenInfo.shared`); earlier tokens of a decoder are in the key/value caches, mixed. A layer that is
    called by itself takes its own values for V_1.

    Fixed λ of 0.5 are the paper's Identity-ResFormer and its authors' code; λ₁ = 2 and λ₂ = 1 its Constant-ResFormer;
    `learned` ones, two numbers a layer, its Learnable-ResFormer.

    It supports all positional-encoding hooks. Dropout is applied to the attention weights.

    x [B, T, C] → [B, T, C]; keys and values [B, H, S, D].

    Options:
        first: λ₁, or where it starts. own: λ₂, or where it starts. learned: whether they are learned.
        bias: whether the four projections have one.
        head_dim: D; None: d_model / num_heads.

    Raises:
        ValueError: in cross-attention, where all layers make their values of one text, the encoder's output; what
            `multihead` raises.
    """

    def __init__(
        self, *, site: LayerSite, first: float = 0.5, own: float = 0.5, learned: bool = False, **parent: object
    ):
        super().__init__(**parent)
        if site.sublayer == "cross":
            raise ValueError(
                _("it mixes in values of the first layer, and in cross-attention all layers make theirs of one text")
            )
        self.layer, self.mix = site.layer, (first, own)
        if learned and self.layer:
            start = nn.initializer.Assign([first, own])
            self.weights = self.create_parameter([2], default_initializer=start)
        else:
            self.weights = None

    def project(self, source: Tensor, info: TokenInfo) -> KeyValue:
        kv = super().project(source, info)
        if self.layer == 0:
            info.shared[FIRST] = kv.value
            return kv
        first, own = self.mix if self.weights is None else self.weights.astype(kv.value.dtype)
        return KeyValue(kv.key, first * info.shared.get(FIRST, kv.value) + own * kv.value)
