"""Keys and values made from a small vector, which is all that is cached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import Attention, Cache, Geometry, Mask, Norm, Tap, TokenInfo
from paddle_tfm.validators import matrix_side
from paddle_tfm_plugins.attention._dot_product import (
    merge_heads,
    project_out,
    require_memory,
    split_heads,
    width_of_head,
)
from paddle_tfm_plugins.norm.rms import RMSNorm


@dataclass(frozen=True)
class Latent(Cache):
    """What is cached of each token: the latent [B, 1, S, L], and the key [B, 1, S, R] that all heads share."""

    latent: Tensor
    key: Tensor


class MultiHeadLatent(Attention):
    """Multi-head latent attention: keys and values come from one small vector (DeepSeek-V2, arXiv:2405.04434).

    c = norm(source W_c) [L] and r = rotate(source W_r) [R] are cached; k_h = c W_k and v_h = c W_v are made from them.
    Scores are (q_h k_hᵀ + q'_h rᵀ) / sqrt(D + R) with q_h = x W_q [D] and q'_h = rotate(x W_q') [R], the head's own;
    out = [head_1 … head_H] W_o. The norm is an RMS norm with weights (eps 1e-6). No matrix has a bias, as in
    DeepSeek-V2 (the paper above). With `query_latent` Q, queries are made from norm(x W_x) [Q] in place of x.

    An encoding that rotates turns r and q' alone, and is built for heads of width R ("decoupled" in the paper): a
    rotation between W_q and W_k would forbid to multiply the two. Under any other encoding r is a key like others. A
    bias on the scores is added; terms on scores and values, which want keys and values of one width, are refused.

    A token's cache is L + R numbers, where `multihead` has 2 H D. W_k and W_v need not be applied to it: for fewer than
    D queries (a step of a search) q_h W_kᵀ is compared with c, and W_v is applied to what heads gather of c.

    Dropout is applied to the attention weights. x [B, T, C], source [B, S, C] → [B, T, C].

    Options:
        head_dim: D; None: d_model / num_heads. latent: L; None: 4 D, as in the paper.
        rotary_dim: R; None: D / 2, as in the paper.
        query_latent: Q; None: queries are made from x, as in DeepSeek-V2-Lite. (DeepSeek-V2: 12 D.)

    Raises:
        ValueError: num_heads does not divide d_model and head_dim is None; a width is below 1 or above 65,536.
    """

    supports = frozenset({"embed", "rotate", "bias"})

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        dropout: float,
        inner_norm: Callable[[int], Norm] | None = None,
        head_dim: int | None = None,
        latent: int | None = None,
        rotary_dim: int | None = None,
        query_latent: int | None = None,
    ):
        super().__init__()
        _, _, rotated = self.geometry(d_model, num_heads, head_dim, rotary_dim)
        matrix_side(latent=latent, query_latent=query_latent)
        self.num_heads, self.head_dim = num_heads, width_of_head(d_model, num_heads, head_dim)
        self.scale = (self.head_dim + rotated) ** -0.5
        latent, width = 4 * self.head_dim if latent is None else latent, num_heads * self.head_dim
        self.query_latent = self.query_norm = None
        if query_latent is not None:
            self.query_latent, self.query_norm = Linear(d_model, query_latent, False), RMSNorm(query_latent)
        asked = d_model if query_latent is None else query_latent
        self.query, self.rotated_query = Linear(asked, width, False), Linear(asked, num_heads * rotated, False)
        self.latent, self.latent_norm = Linear(d_model, latent, False), RMSNorm(latent)
        self.rotated_key = Linear(d_model, rotated, False)
        self.key, self.value = Linear(latent, width, False), Linear(latent, width, False)
        self.output = Linear(width, d_model, False)
        self.dropout = Dropout(dropout)
        self.inner_norm = inner_norm(width) if inner_norm is not None else None

    @classmethod
    def geometry(
        cls,
        d_model: int,
        num_heads: int,
        head_dim: int | None = None,
        rotary_dim: int | None = None,
        **options: object,
    ) -> Geometry:
        """What an encoding rotates: H queries and a key of width R."""
        width = width_of_head(d_model, num_heads, head_dim)
        rotary_dim = width // 2 if rotary_dim is None else rotary_dim
        matrix_side(rotary_dim=rotary_dim)
        return Geometry(num_heads, 1, rotary_dim)

    def project(self, source: Tensor, info: TokenInfo) -> Latent:
        key = self.rotated_key(source).unsqueeze(1)  # [B, S, R] -> [B, 1, S, R]
        return Latent(self.latent_norm(self.latent(source)).unsqueeze(1), info.encoding.key(key, info.positions))

    def forward(self, x: Tensor, kv: Latent, info: TokenInfo, mask: Mask, tap: Tap) -> Tensor:
        asked = x if self.query_latent is None else self.query_norm(self.query_latent(x))
        q = split_heads(self.query(asked), self.num_heads)  # [B, H, T, D]
        rotated = info.encoding.query(split_heads(self.rotated_query(asked), self.num_heads), info.positions)
        require_memory(*rotated.shape[:3], kv.key.shape[2])
        few = x.shape[1] < self.head_dim
        if few:
            q, key = paddle.matmul(q, self._by_head(self.key), transpose_y=True), kv.latent  # [B, H, T, L]
        else:
            key = split_heads(self.key(kv.latent.squeeze(1)), self.num_heads)  # [B, H, S, D]
        scores = paddle.matmul(q, key, transpose_y=True) + paddle.matmul(rotated, kv.key, transpose_y=True)
        weights = F.softmax(mask.add_to(scores * self.scale), -1)  # [B, H, T, S]
        tap.record("attention", weights)
        weights = self.dropout(weights)
        if few:
            context = paddle.matmul(paddle.matmul(weights, kv.latent), self._by_head(self.value))  # [B, H, T, D]
        else:
            context = paddle.matmul(weights, split_heads(self.value(kv.latent.squeeze(1)), self.num_heads))
        return project_out(merge_heads(context), info, self.inner_norm, self.output)

    def _by_head(self, linear: Linear) -> Tensor:
        """The weight [L, H·D] as [1, H, L, D]."""
        return split_heads(linear.weight.unsqueeze(0), self.num_heads)

    def branch_weights(self) -> list[Tensor]:
        return [self.value.weight, self.output.weight]
