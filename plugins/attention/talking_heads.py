"""Heads that mix their scores and their weights."""

from __future__ import annotations

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm.protocols import KeyValue, Mask, Tap, TokenInfo, keep_initial, no_decay
from paddle_tfm_plugins.attention._dot_product import gather, scores_of
from paddle_tfm_plugins.attention.multihead import MultiHead


class TalkingHeads(MultiHead):
    """Talking-heads attention: scores and weights are mixed across the heads (Shazeer 2020, arXiv:2003.02436).

    J_h = q_h k_hᵀ / sqrt(D), L_g = Σ_h P[h, g] J_h, W = softmax(L + mask), U_g = Σ_h R[h, g] W_h, out = [U_1 v_1 …
    U_H v_H] W_o, with learned P and R [H, H] of each layer. Scores are mixed before the mask, so that what must not
    be seen has weight 0 in every head, and sums of such weights are 0 too. The paper lets the three numbers of heads
    differ; here all are num_heads.

    P and R start at the identity, so that a model starts as `multihead` (a liberty).

    It supports all positional-encoding hooks: a term on the scores is mixed with them, a bias is added to the mixed
    scores, a term on the values is weighed by U. Dropout is applied to U. What is recorded as attention is U, whose
    rows sum to 1 only while R is as at first, and which may be negative.

    x [B, T, C], source [B, S, C] → [B, T, C]; keys and values [B, H, S, D].

    Options:
        bias: whether the four projections have one.
        head_dim: D; None: d_model / num_heads.

    Raises:
        ValueError: as `multihead`.
    """

    def __init__(self, *, num_heads: int, **parent):
        super().__init__(num_heads=num_heads, **parent)
        identity = nn.initializer.Assign(np.eye(num_heads))
        mixers = (self.create_parameter([num_heads, num_heads], default_initializer=identity) for _ in range(2))
        self.mix_scores, self.mix_weights = (no_decay(keep_initial(mixer)) for mixer in mixers)

    def heads(self, x: Tensor, kv: KeyValue, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        scores = mixed(scores_of(self.queries(x), kv.key, info, mask), self.mix_scores)
        weights = mixed(F.softmax(mask.add_to(scores), -1), self.mix_weights)  # [B, H, T, S]
        return gather(weights, kv, info, mask, self.dropout, tap)


def mixed(x: Tensor, matrix: Tensor) -> Tensor:
    """Each head a sum of all: x [B, H, T, S], matrix [H, H] → Σ_h matrix[h, g] x_h, [B, H, T, S]."""
    rows = x.reshape([x.shape[0], x.shape[1], -1])  # [B, H, T, S] -> [B, H, T·S]
    return paddle.matmul(matrix, rows, transpose_x=True).reshape(x.shape)
