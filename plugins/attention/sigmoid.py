"""Attention whose weights do not compete: a sigmoid in the place of the softmax."""

from __future__ import annotations

import math

import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm.protocols import KeyValue, Mask, Tap, TokenInfo
from paddle_tfm.validators import at_least
from paddle_tfm_plugins.attention._dot_product import gather, scores_of
from paddle_tfm_plugins.attention.multihead import MultiHead


class SigmoidAttention(MultiHead):
    """Sigmoid attention: each key is weighed by itself, σ(score − log n) (Ramapuram 2024, arXiv:2409.04431).

    head_h = σ(q_h k_hᵀ / sqrt(D) − log n) v_h, out = [head_1 … head_H] W_o. −log n lets the weights of n keys sum to
    about 1 as initialized, as those of a softmax do: σ(−log n) = 1 / (1 + n). Later they may sum to less or to more.

    n is the number of keys that the query may see: i + 1 where token i attends to its past, the length of the text
    elsewhere, so that neither padding nor the cache changes a weight. The paper has one n for all queries, the length
    that a model is trained at: that is `length`.

    It supports all positional-encoding hooks: a bias is added to the scores before the sigmoid. Dropout is applied to
    the weights. The paper trains it with LayerScale (placement `layer_scale`) and QK-norm, without which large models
    were unstable: neither is in here.

    x [B, T, C], source [B, S, C] → [B, T, C]; keys and values [B, H, S, D].

    Options:
        length: n; None: the number of keys that the query may see.
        bias: whether the four projections have one.
        head_dim: D; None: d_model / num_heads.

    Raises:
        ValueError: length is below 1; what `multihead` raises.
    """

    expected_failures = {"averages": "weights are sigmoids, which sum to 1 only about and only at first"}

    def __init__(self, *, length: int | None = None, **parent):
        super().__init__(**parent)
        at_least(1, length=length)
        self.length = length

    def heads(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        scores = mask.add_to(scores_of(self.queries(x), kv.key, info, mask))  # [B, H, T, S]
        weights = F.sigmoid(scores - self._log_number(mask, scores.dtype))
        return gather(weights, kv, info, mask, self.dropout, tap)

    def _log_number(self, mask: Mask, dtype: paddle.dtype) -> float | Tensor:
        """log n, [B, 1, T|1, 1] where it depends on the query; 0 where that may see nothing."""
        if self.length is not None:
            return math.log(self.length)
        return paddle.log(mask.allowed().astype(dtype).sum(-1, keepdim=True).clip(min=1.0))
