"""Scores that grow with the number of keys, so that attention to long texts stays as sharp."""

from __future__ import annotations

import paddle
from paddle import Tensor, nn

from paddle_tfm.protocols import KeyValue, Mask, Tap, TokenInfo
from paddle_tfm.validators import positive
from paddle_tfm_plugins.attention._dot_product import attend
from paddle_tfm_plugins.attention.multihead import MultiHead


class ScalableSoftmax(MultiHead):
    """Scalable softmax (SSMax): weights are n^(s · score), n the number of keys (Nakanishi 2025, arXiv:2501.19399).

    head_h = softmax(s_h · log n_i · q_h k_hᵀ / sqrt(D)) v_h, n_i how many keys query i may see and s_h one learned
    number of the head. Under a softmax the largest weight of scores in a fixed range goes to 0 as n grows; here it need
    not. A query that sees one key has log 1 = 0, and all its weight there.

    It supports all positional-encoding hooks: a term on the scores is multiplied with them, a bias is added as it is.
    Dropout is applied to the attention weights.

    x [B, T, C], source [B, S, C] → [B, T, C]; keys and values [B, H, S, D].

    Options:
        scale: what each s starts at. The paper's 0.168 is 1 / the mean of log n over texts of 1,024 tokens.
        bias: whether the four projections have one.
        head_dim: D; None: d_model / num_heads.

    Raises:
        ValueError: scale is not above 0; what `multihead` raises.
    """

    def __init__(self, *, num_heads: int, scale: float = 0.168, **parent):
        super().__init__(num_heads=num_heads, **parent)
        positive(scale=scale)
        self.scale = self.create_parameter([num_heads], default_initializer=nn.initializer.Constant(scale))

    def heads(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        q = self.queries(x)
        keys = mask.allowed().astype(q.dtype).sum(-1, keepdim=True).clip(min=1.0)  # [B, 1, T|1, 1]
        scale = self.scale.astype(q.dtype).reshape([1, -1, 1, 1]) * paddle.log(keys) * q.shape[-1] ** -0.5
        return attend(q, kv, info, mask, self.dropout, tap, scale)
