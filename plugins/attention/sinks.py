"""Attention that may look at nothing: a sink takes what no key should get."""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm.protocols import KeyValue, Mask, Tap, TokenInfo
from paddle_tfm_plugins.attention._dot_product import gather, scores_of
from paddle_tfm_plugins.attention.multihead import MultiHead


class Sinks(MultiHead):
    """Attention sinks: each head has a score that no token has; what goes there is lost (gpt-oss, arXiv:2508.10925).

    w_ij = exp(s_ij) / (exp(b_h) + Σ_k exp(s_ik)), s the scores of `multihead` in head h, b_h one learned number of the
    head; head_h = w v_h, out = [head_1 … head_H] W_o. Weights sum to less than 1: a head with nothing to do need not
    look at some token, as it must under a softmax, where it picks the first ones (Xiao 2023, arXiv:2309.17453).

    b is that of gpt-oss (the paper above). With `learned` false it is 0 for good: softmax off by one
    (Miller 2023, https://www.evanmiller.org/attention-is-off-by-one.html), the "zero sink" of Xiao 2023. A learned b
    starts at 0 too, where transformers' code draws it from N(0, 0.02²).

    It supports all positional-encoding hooks; none of them touches the sink. Dropout is applied to the weights of the
    keys, which are what is recorded as attention. A query that may see no key gets zeros.

    x [B, T, C], source [B, S, C] → [B, T, C]; keys and values [B, H, S, D].

    Options:
        learned: whether b is learned; false: it is 0.
        bias: whether the four projections have one.
        head_dim: D; None: d_model / num_heads.

    Raises:
        ValueError: as `multihead`.
    """

    expected_failures = {"averages": "weights sum to less than 1: the sink has the rest"}

    def __init__(self, *, num_heads: int, learned: bool = True, **parent):
        super().__init__(num_heads=num_heads, **parent)
        zero = nn.initializer.Constant(0.0)
        self.sink = self.create_parameter([num_heads], default_initializer=zero) if learned else None

    def heads(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        scores = mask.add_to(scores_of(self.queries(x), kv.key, info, mask))  # [B, H, T, S]
        shape = [*scores.shape[:3], 1]
        if self.sink is None:
            sink = paddle.zeros(shape, scores.dtype)
        else:
            sink = self.sink.astype(scores.dtype).reshape([1, -1, 1, 1]).expand(shape)  # [H] -> [B, H, T, 1]
        weights = F.softmax(paddle.concat([scores, sink], -1), -1)[:, :, :, :-1]
        return gather(weights, kv, info, mask, self.dropout, tap)
