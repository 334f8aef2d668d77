"""Attention over depth: each sublayer reads a weighted mean of what all below it gave."""

from __future__ import annotations

from collections.abc import Sequence

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm.protocols import LayerSite, Placement, Sublayer, TokenInfo, keep_initial, maps_as
from paddle_tfm.validators import at_least

EPS = 1e-6  # added to a mean square


class AttentionResiduals(Placement):
    """Attention residuals: a sublayer reads a mean of all earlier outputs, weighted by softmax (arXiv:2603.15031).

    v_0 [C] is the embedded token and v_k = drop(f_k(norm(h_k))) what the k-th sublayer of the stack gives. There is no
    sum of them: h_1 = v_0, and

        h_k = Σ_(j<k) α_j v_j    with α = softmax_j(w_kᵀ v_j / rms(v_j))

    where rms is the root mean square over the channels and w_k [C] a learned query, which depends on no token. The
    stack ends with one more mean, over all v, and its final norm. The w start at zero, as in the paper: plain means. A
    gain of each key's norm, as the authors' code has, is none here: it would only be multiplied with w.

    x [B, T, C]; between the layers [B, T, 1 + l, C]: the mean that comes next, and the l vectors v so far. So the i-th
    sublayer of a layer holds the query of whatever reads next.

    Options:
        block: of how many sublayers in a row the outputs are summed to one v; 1: the paper's full form, more: its
            blocks, where a sublayer also reads what its own block has summed so far.

    Raises:
        ValueError: block is below 1.
    """

    final_norm = True

    def __init__(self, *, sites: Sequence[LayerSite], d_model: int, block: int = 1, **parent):
        super().__init__(sites=sites, d_model=d_model, **parent)
        at_least(1, block=block)
        first = sites[0].layer * len(sites)  # sublayers of the stack below this layer
        self.opens = [k % block == 0 for k in range(first, first + len(sites))]  # whether a block begins there
        zero = nn.initializer.Constant(0.0)
        queries = (self.create_parameter([d_model, 1], default_initializer=zero) for _ in sites)
        self.queries = nn.ParameterList([maps_as(keep_initial(query), "output") for query in queries])

    def enter(self, x: Tensor, info: TokenInfo) -> Tensor:
        return paddle.stack([x, x], 2)  # [B, T, C] -> [B, T, 1 + 1, C]

    def wrap(self, i: int, x: Tensor, sublayer: Sublayer, info: TokenInfo) -> Tensor:
        branch = self.drops[i](sublayer(self.norms[i](x[:, :, 0], info.valid, info.positions)))
        with paddle.amp.auto_cast(enable=False):  # what travels is the residual: it stays in full precision
            new = branch.unsqueeze(2).astype(x.dtype)  # [B, T, 1, C]
            past = [x[:, :, 1:], new] if self.opens[i] else [x[:, :, 1:-1], x[:, :, -1:] + new]
            outputs = paddle.concat(past, 2)  # [B, T, l, C]
            scale = paddle.rsqrt(paddle.square(outputs).mean(-1, keepdim=True) + EPS)
            weights = F.softmax(paddle.matmul(outputs, self.queries[i]) * scale, 2)  # [B, T, l, 1]
            mean = paddle.matmul(weights, outputs, transpose_x=True)  # [B, T, 1, l] · [B, T, l, C] -> [B, T, 1, C]
            return paddle.concat([mean, outputs], 2)

    def leave(self, x: Tensor, info: TokenInfo) -> Tensor:
        return x[:, :, 0]
