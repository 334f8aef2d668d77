"""Hyper-connections whose mixing of the streams neither amplifies nor forgets."""

from __future__ import annotations

from collections.abc import Sequence

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm.protocols import LayerSite, Placement, Sublayer, TokenInfo, keep_initial, maps_as, no_decay
from paddle_tfm.validators import at_least, between

START = 0.01  # of the scales of what depends on the token
EPS = 1e-6  # added to a mean square


class ManifoldHyperConnections(Placement):
    """Manifold-constrained hyper-connections (mHC): streams mixed by doubly stochastic weights (arXiv:2512.24880).

    Each token has a matrix H [n, C] in the place of x [C], at first n times the embedded token, and at the end the sum
    of its rows, to which the stack's final norm is applied. Every sublayer f has weights of its own:

        H ← M H + wᵀ drop(f(norm(r H)))

    with r = σ(s_r h W_r + b_r) [1, n], w = 2 σ(s_w h W_w + b_w) [1, n], M = sinkhorn(s_M h W_M + b_M) [n, n], h the
    n · C numbers of H divided by their root mean square. `sinkhorn` takes exp and then divides each column and each row
    by its sum, `iterations` times: rows and columns of M sum to one, so that a product of such M keeps the sum of the
    streams and enlarges none, however deep the stack (Sinkhorn & Knopp 1967). In `hyper_connections` they are free.
    x [B, T, C]; between the layers [B, T, n, C].

    The scales s start at 0.01, as in the paper. It leaves the rest open; here, as in FFTYYY/mhc-lite, the three W
    [n · C, …] start at zero, b_r and b_w at 1 for stream k mod n of the k-th sublayer of the stack and at −1 elsewhere,
    b_M at 0 on its diagonal and −8 elsewhere, so that streams are at first hardly mixed. Weight decay acts on W alone.

    Options:
        streams: n. iterations: of Sinkhorn and Knopp.

    Raises:
        ValueError: streams is not in [1, 1000]; iterations is below 1.
    """

    final_norm = True

    def __init__(self, *, sites: Sequence[LayerSite], d_model: int, streams: int = 4, iterations: int = 20, **parent):
        super().__init__(sites=sites, d_model=d_model, **parent)
        between("[1, 1000]", streams=streams)
        at_least(1, iterations=iterations)
        self.streams, self.iterations = streams, iterations
        first, eye = sites[0].layer * len(sites), paddle.eye(streams)  # sublayers of the stack below this layer
        own = [2.0 * eye[k % streams] - 1.0 for k in range(first, first + len(sites))]
        self.reads = nn.ParameterList([self._parameter([streams], nn.initializer.Assign(start)) for start in own])
        self.writes = nn.ParameterList([self._parameter([streams], nn.initializer.Assign(start)) for start in own])
        apart = nn.initializer.Assign(8.0 * eye - 8.0)
        self.mixes = nn.ParameterList([no_decay(self._parameter([streams, streams], apart)) for _ in sites])
        zero, start = nn.initializer.Constant(0.0), nn.initializer.Constant(START)
        matrices = (self._parameter([streams * d_model, streams * (2 + streams)], zero) for _ in sites)
        self.maps = nn.ParameterList([maps_as(matrix, "output") for matrix in matrices])  # (W_r | W_w | W_M)
        self.scales = nn.ParameterList([self._parameter([3], start) for _ in sites])  # of read, write and mix

    def _parameter(self, shape: list[int], initializer: nn.initializer.Initializer) -> Tensor:
        return keep_initial(self.create_parameter(shape, default_initializer=initializer))

    def enter(self, x: Tensor, info: TokenInfo) -> Tensor:
        return paddle.stack([x] * self.streams, 2)  # [B, T, C] -> [B, T, n, C]

    def wrap(self, i: int, x: Tensor, sublayer: Sublayer, info: TokenInfo) -> Tensor:
        with paddle.amp.auto_cast(enable=False):  # the streams are the residual: they stay in full precision
            read, write, mix = self.weights(i, x)
            y = paddle.matmul(read.unsqueeze(2), x).squeeze(2)  # [B, T, 1, n] · [B, T, n, C] -> [B, T, C]
        branch = self.drops[i](sublayer(self.norms[i](y, info.valid, info.positions)))
        with paddle.amp.auto_cast(enable=False):
            written = paddle.matmul(write.unsqueeze(3), branch.unsqueeze(2).astype(x.dtype))  # [B, T, n, C]
            return paddle.matmul(mix, x) + written

    def leave(self, x: Tensor, info: TokenInfo) -> Tensor:
        return x.sum(2)

    def weights(self, i: int, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The i-th sublayer's r [B, T, n], w [B, T, n] and M [B, T, n, n] of each token of x [B, T, n, C]."""
        n, flat = self.streams, x.flatten(2)  # [B, T, n, C] -> [B, T, n · C]
        h = flat * paddle.rsqrt(paddle.square(flat).mean(-1, keepdim=True) + EPS)
        read, write, mix = paddle.matmul(h, self.maps[i]).split([n, n, n * n], -1)
        of_read, of_write, of_mix = self.scales[i].unbind(0)
        mix = mix.reshape([*x.shape[:2], n, n])  # [B, T, n · n] -> [B, T, n, n]
        return (
            F.sigmoid(of_read * read + self.reads[i]),
            2.0 * F.sigmoid(of_write * write + self.writes[i]),
            sinkhorn(of_mix * mix + self.mixes[i], self.iterations),
        )


def sinkhorn(logits: Tensor, iterations: int) -> Tensor:
    """exp(logits) [..., n, n] with each column and then each row divided by its sum, so many times."""
    for _ in range(iterations):
        logits = logits - paddle.logsumexp(logits, -2, keepdim=True)
        logits = logits - paddle.logsumexp(logits, -1, keepdim=True)
    return logits.exp()
