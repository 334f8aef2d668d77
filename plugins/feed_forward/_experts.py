"""Tokens through the experts that were selected for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import paddle
from paddle import Tensor

from paddle_tfm.layers import Linear
from paddle_tfm.protocols import FeedForward, Tap, TokenInfo


def affinities(tokens: Tensor, router: Linear, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Of tokens [N, C] to the experts, function(tokens W_r) [N, E], in float32 at least: rounded scores select other
    experts (Fedus 2021, arXiv:2101.03961, section 2.4)."""
    dtype = tokens.dtype if tokens.dtype == paddle.float64 else "float32"
    with paddle.amp.auto_cast(enable=False):
        return function(paddle.matmul(tokens.astype(dtype), router.weight.astype(dtype)))


def through_experts(
    experts: Sequence[FeedForward], tokens: Tensor, gates: Tensor, selected: Tensor, info: TokenInfo, tap: Tap
) -> Tensor:
    """Σ_e g_e E_e(x) over the selected experts: tokens [N, C], gates [N, E], selected bool [N, E] → [N, C].

    An expert computes its own tokens alone; gates of experts that are not selected are unused."""
    out = paddle.zeros_like(tokens)
    for e, expert in enumerate(experts):
        rows = paddle.nonzero(selected[:, e]).squeeze(-1)  # int64 [n]
        if rows.shape[0]:
            share = gates[:, e : e + 1].index_select(rows, 0).astype(tokens.dtype)  # [n, 1]
            part = expert(tokens.index_select(rows, 0), info, tap) * share  # [n, C]
            out = paddle.scatter_nd_add(out, rows.unsqueeze(-1), part)
    return out


def top(scores: Tensor, k: int) -> Tensor:
    """bool [N, E]: the k highest scores [N, E] of each token."""
    best = paddle.topk(scores, k, axis=-1)[1]  # [N, k]
    return paddle.nn.functional.one_hot(best, scores.shape[-1]).sum(1) > 0  # [N, k, E] -> [N, E]
