"""Queries and keys through a norm: scores that grow with learned weights alone."""

from __future__ import annotations

from typing import Literal

from paddle import Tensor

from paddle_tfm.protocols import Norm
from paddle_tfm.validators import one_of
from paddle_tfm_plugins.attention._dot_product import split_heads
from paddle_tfm_plugins.attention.multihead import MultiHead
from paddle_tfm_plugins.norm.layer import LayerNorm
from paddle_tfm_plugins.norm.rms import RMSNorm


class QKNorm(MultiHead):
    """QK-norm: queries and keys of each head pass a norm with learned weights (Dehghani 2023, arXiv:2302.05442).

    head_h = softmax(norm_q(q_h) norm_k(k_h)ᵀ / sqrt(D)) v_h, out = [head_1 … head_H] W_o. The norms are two, over the D
    channels of a head, and all heads share their weights [D]. Neither has a bias. While the weights are 1, |score| ≤
    sqrt(D) whatever the input, before an encoding adds to it; what is learned besides is 2 D numbers.

    `norm` layer is that of ViT-22B (the paper above), rms that of Qwen 3 (arXiv:2505.09388) and Gemma 3
    (arXiv:2503.19786). With `per_head` false the norms are over the H · D channels of all heads together, before these
    are parted, with a weight for each channel: OLMo 2 (arXiv:2501.00656). The bound is H sqrt(D) then, for the whole
    length may be one head's, and 2 H D numbers are learned. Scores that are cosines times one learned number (Henry
    2020) are `cosine`.

    It supports all positional-encoding hooks: queries and keys are rotated after the norm, as in all of these models.
    Dropout is applied to the attention weights.

    x [B, T, C], source [B, S, C] → [B, T, C]; keys and values [B, H, S, D].

    Options:
        norm: rms (eps 1e-6) or layer (eps 1e-5).
        per_head: whether the norms see one head or all of them together.
        bias: whether the four projections have one.
        head_dim: D; None: d_model / num_heads.

    Raises:
        ValueError: another `norm`; what `multihead` raises.
    """

    def __init__(self, *, norm: Literal["rms", "layer"] = "rms", per_head: bool = True, **parent):
        super().__init__(**parent)
        one_of(["rms", "layer"], norm=norm)
        self.per_head = per_head
        width = self.query.weight.shape[1]
        width = width // self.num_heads if per_head else width
        self.query_norm, self.key_norm = (
            RMSNorm(width) if norm == "rms" else LayerNorm(width, bias=False) for _ in range(2)
        )

    def queries(self, x: Tensor) -> Tensor:
        return self.normalized(self.query(x), self.query_norm)

    def keys(self, source: Tensor) -> Tensor:
        return self.normalized(self.key(source), self.key_norm)

    def normalized(self, x: Tensor, norm: Norm) -> Tensor:
        """Queries or keys [B, T, H·D] → [B, H, T, D]."""
        return norm(split_heads(x, self.num_heads)) if self.per_head else split_heads(norm(x), self.num_heads)
