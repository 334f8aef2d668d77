"""GRAPE-A: ALiBi's penalty on distance, as steep as the query and the key ask for."""

from __future__ import annotations

import math
from typing import ClassVar

import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm.protocols import LayerSite, PositionalEncoding, keep_initial, maps_as
from paddle_tfm_plugins.position.alibi import ALiBi


class GRAPEAdditive(PositionalEncoding):
    """GRAPE-A-QK: a penalty on distance whose slope query and key choose (Zhang 2025, arXiv:2512.07805).

    bias[h, i, j] = (j − i) ω_h (softplus(v̂_h · q_i / sqrt(D)) + softplus(û_h · k_j / sqrt(D))), equation 4.6, where
    attention is causal, −|j − i| in the place of j − i elsewhere; v̂ = v / |v|. Each head of each layer learns v and u
    [H, D], which start at N(0, 1 / D), and ω_h ≥ 0, which starts at `alibi`'s slope: ω_h = softplus(a_h) slope_h. With
    constant gates it is `alibi`. All as in the authors' code (model-architectures/GRAPE), but for the slopes where H is
    no power of two.

    Of the paper's forms it is that of rank one with the best results (table 1); rotations in learned planes (GRAPE-M)
    do no better than `rotary` there, and path integrals (GRAPE-AP), a little better than this form, need a projection
    of each token of their own.

    q [B, H, Tq, D], k [B, H, Tk, D], positions [B|1, T] → [B, H, Tq, Tk], times sqrt(D), by which scores are divided.
    There are no options.

    Raises:
        ValueError: `num_heads` is below 1.
    """

    per_layer = True
    expected_failures: ClassVar[dict[str, str]] = {"direction": "in an encoder it counts the distance alone, as ALiBi"}

    def __init__(self, head_dim: int, num_heads: int, site: LayerSite):
        super().__init__()
        self.distance = ALiBi(num_heads, site)
        one = nn.initializer.Constant(math.log(math.e - 1))  # softplus of it is 1
        self.rate = self.create_parameter([num_heads], default_initializer=one)
        start = nn.initializer.Normal(std=head_dim**-0.5)
        self.of_query, self.of_key = (
            maps_as(keep_initial(self.create_parameter([num_heads, head_dim], default_initializer=start)), None)
            for _ in range(2)
        )

    def scores(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        of_query, of_key = _gate(q, self.of_query), _gate(k, self.of_key).transpose([0, 1, 3, 2])
        slopes = F.softplus(self.rate).reshape([1, -1, 1, 1]) * self.distance.bias(q_positions, k_positions)
        return q.shape[-1] ** 0.5 * slopes * (of_query + of_key)  # [B, H, Tq, Tk]


def _gate(x: Tensor, vectors: Tensor) -> Tensor:
    """softplus(v̂ · x / sqrt(D)) of x [B, H, T, D] and vectors v [H, D] → [B, H, T, 1]."""
    unit = vectors / vectors.norm(axis=-1, keepdim=True)
    along = (x.astype(vectors.dtype) * unit.unsqueeze(1)).sum(-1, keepdim=True)  # [B, H, T, 1]
    return F.softplus(along / x.shape[-1] ** 0.5)
