"""Attention that forgets by what it reads: a gate at each token fades all that lies before it."""

from __future__ import annotations

from dataclasses import dataclass

import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm.language import _
from paddle_tfm.layers import Linear
from paddle_tfm.protocols import Cache, LayerSite, Mask, Tap, TokenInfo
from paddle_tfm_plugins.attention._dot_product import gather, scores_of
from paddle_tfm_plugins.attention.multihead import MultiHead


@dataclass(frozen=True)
class Fading(Cache):
    """Keys and values [B, H, S, D] with the logarithms of the forget gates [B, H, S], 0 at padding."""

    key: Tensor
    value: Tensor
    log_gate: Tensor


class Forgetting(MultiHead):
    """Forgetting attention: each token fades, by a gate of its own, what the past before it counts (Lin 2025,
    arXiv:2503.02130).

    f_t = σ(x_t W_f + b_f), a number for each head; head_h = softmax(q_h k_hᵀ / sqrt(D) + F_h) v_h with F_ij = log
    f_{j+1} + … + log f_i, the same as weighing exp(score) by the product of these gates; out = [head_1 … head_H] W_o.
    Padding forgets nothing. b_f starts at 0, so that a token fades the past by about one half; W_f and b_f are C H + H
    numbers more than `multihead` has.

    A decay by distance that is learned from content: the paper leaves positional encodings out (`position: none`), and
    finds that rotary changes little. It supports all hooks nevertheless. Gates count from a key on to its query, so
    that no key may stand behind it: it belongs in a decoder's self-attention. What the paper's "Pro" block adds (an
    output gate and norm, QK-norm, shifted keys and values) is not in here. Dropout is applied to the attention weights.

    x [B, T, C], source [B, T, C] → [B, T, C]; keys and values [B, H, T, D], gates [B, H, T].

    Options:
        bias: whether the four projections have one; the authors' have none.
        head_dim: D; None: d_model / num_heads.

    Raises:
        ValueError: outside a decoder's self-attention; what `multihead` raises.
    """

    def __init__(self, *, d_model: int, num_heads: int, site: LayerSite | None = None, bias: bool = False, **parent):
        super().__init__(d_model=d_model, num_heads=num_heads, bias=bias, **parent)
        if site is not None and not site.causal:
            raise ValueError(_("it fades what lies further back, so it must stand in a decoder's self-attention"))
        self.forget = Linear(d_model, num_heads)

    def project(self, source: Tensor, info: TokenInfo) -> Fading:
        kv = super().project(source, info)
        log_gate = F.log_sigmoid(self.forget(source).astype(self.forget.bias.dtype))  # [B, T, H]
        log_gate = log_gate * info.valid.astype(log_gate.dtype).unsqueeze(-1)
        return Fading(kv.key, kv.value, log_gate.transpose([0, 2, 1]))  # [B, T, H] -> [B, H, T]

    def heads(self, x: Tensor, kv: Fading, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        total = kv.log_gate.cumsum(-1)  # [B, H, S], whose last T are those of the queries
        faded = total[:, :, -x.shape[1] :].unsqueeze(-1) - total.unsqueeze(-2)  # [B, H, T, S]
        scores = scores_of(self.queries(x), kv.key, info, mask)
        weights = F.softmax(mask.add_to(scores + faded.astype(scores.dtype)), -1)
        return gather(weights, kv, info, mask, self.dropout, tap)
