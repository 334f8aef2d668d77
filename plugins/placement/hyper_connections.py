"""Several residual streams, which each sublayer reads from, writes to and mixes by learned weights."""

from __future__ import annotations

from collections.abc import Sequence

import paddle
from paddle import Tensor, nn

from paddle_tfm.protocols import (
    LayerSite,
    NormFactory,
    Placement,
    Sublayer,
    TokenInfo,
    keep_initial,
    maps_as,
    no_decay,
)
from paddle_tfm.validators import between

START = 0.01  # of the scales of what depends on the token


class HyperConnections(Placement):
    """Hyper-connections: n streams, read, mixed and written to by learned weights (Zhu 2024, arXiv:2409.19606).

    Each token has a matrix H [n, C] in the place of x [C], at first n times the embedded token, and at the end the sum
    of its rows, to which the stack's final norm is applied. Every sublayer f has weights of its own, A = (A_m | A_r)
    [n, 1 + n] and B [n]:

        H ← A_rᵀ H + B drop(f(norm(A_mᵀ H)))

    `dynamic`: these weights depend on the token. To A is added s_α tanh(norm(H) W_α), to B s_β tanh(norm(H) W_β), with
    W_α [C, 1 + n], W_β [C], two numbers s and a norm that are the sublayer's own. As initialized, A_m is the unit
    vector of the stream k mod n for the k-th sublayer of the stack, A_r the identity, B ones, W zero and s 0.01:
    exactly pre-norm, the sum being n times its x, which the final norm takes back. x [B, T, C]; between the layers
    [B, T, n, C].

    Weight decay leaves A and B alone and acts on W, as the authors' does. One thing of their training is not a
    placement's: they scale the initial values of output projections by sqrt(n). The paper is about language models;
    here a decoder's cross-attention has its connections too.

    Options:
        streams: n. dynamic: whether the weights depend on the token; False: the paper's static form.

    Raises:
        ValueError: streams is not in [1, 1000].
    """

    final_norm = True

    def __init__(
        self,
        *,
        sites: Sequence[LayerSite],
        norm: NormFactory,
        d_model: int,
        streams: int = 4,
        dynamic: bool = True,
        **parent,
    ):
        super().__init__(sites=sites, norm=norm, d_model=d_model, **parent)
        between("[1, 1000]", streams=streams)
        self.streams, self.dynamic = streams, dynamic
        first = sites[0].layer * len(sites)  # sublayers of the stack below this layer
        eye = paddle.eye(streams)
        reads = [paddle.concat([eye[:, k % streams].unsqueeze(1), eye], 1) for k in range(first, first + len(sites))]
        one, zero, start = (nn.initializer.Constant(value) for value in (1.0, 0.0, START))
        self.alphas = nn.ParameterList(  # (A_m | A_r)
            [no_decay(self._parameter([streams, 1 + streams], nn.initializer.Assign(read))) for read in reads]
        )
        self.betas = nn.ParameterList([self._parameter([streams], one) for _ in sites])
        if dynamic:
            self.state_norms = nn.LayerList([norm(site, d_model) for site in sites])
            matrices = (self._parameter([d_model, 2 + streams], zero) for _ in sites)
            self.maps = nn.ParameterList([maps_as(matrix, "output") for matrix in matrices])  # (W_α | W_β)
            self.alpha_scales = nn.ParameterList([self._parameter([1], start) for _ in sites])
            self.beta_scales = nn.ParameterList([self._parameter([1], start) for _ in sites])

    def _parameter(self, shape: list[int], initializer: nn.initializer.Initializer) -> Tensor:
        return keep_initial(self.create_parameter(shape, default_initializer=initializer))

    def enter(self, x: Tensor, info: TokenInfo) -> Tensor:
        return paddle.stack([x] * self.streams, 2)  # [B, T, C] -> [B, T, n, C]

    def wrap(self, i: int, x: Tensor, sublayer: Sublayer, info: TokenInfo) -> Tensor:
        with paddle.amp.auto_cast(enable=False):  # the streams are the residual: they stay in full precision
            alpha, beta = self._weights(i, x, info)
            mixed = paddle.matmul(alpha, x, transpose_x=True)  # [B, T, 1 + n, C]
        branch = self.drops[i](sublayer(self.norms[i](mixed[:, :, 0], info.valid, info.positions)))
        with paddle.amp.auto_cast(enable=False):
            return mixed[:, :, 1:] + paddle.matmul(beta, branch.unsqueeze(2).astype(x.dtype))

    def leave(self, x: Tensor, info: TokenInfo) -> Tensor:
        return x.sum(2)

    def _weights(self, i: int, x: Tensor, info: TokenInfo) -> tuple[Tensor, Tensor]:
        """The i-th sublayer's A [n, 1 + n] and B [n, 1], or of each token of x, [B, T, n, 1 + n] and [B, T, n, 1]."""
        alpha, beta = self.alphas[i], self.betas[i].unsqueeze(1)
        if not self.dynamic:
            return alpha, beta
        batch, length, streams, width = x.shape
        rows = x.reshape([batch, length * streams, width])  # [B, T, n, C] -> [B, T·n, C], as the norm takes them
        normed = self.state_norms[i](rows, *(_repeat(part, streams) for part in (info.valid, info.positions)))
        by_token = paddle.tanh(paddle.matmul(normed, self.maps[i]))
        by_token = by_token.reshape([batch, length, streams, -1])  # [B, T·n, 2 + n] -> [B, T, n, 2 + n]
        alpha = alpha + by_token[..., :-1] * self.alpha_scales[i]
        return alpha, beta + by_token[..., -1:] * self.beta_scales[i]


def _repeat(tokens: Tensor, times: int) -> Tensor:
    """[B, T] → [B, T·times], each number several times in a row."""
    return tokens.unsqueeze(2).expand([*tokens.shape, times]).flatten(1)  # [B, T] -> [B, T, times] -> [B, T·times]
