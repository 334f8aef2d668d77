"""Transformer-XL's relative positions: a projected sinusoid of the distance, with which every query is scored."""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm.layers import Linear
from paddle_tfm.protocols import PositionalEncoding, no_decay
from paddle_tfm_plugins.position._sinusoid import Sinusoid


class TransformerXL(PositionalEncoding):
    """Scores by content and by distance, with a trained query for each (Dai 2019, arXiv:1901.02860).

    scores[i, j] = q_i · k_j + u · k_j + (q_i + v) · W R(i − j): the encoding adds all but the first term. R(d) [C] is
    the sinusoid of the signed distance, so that keys behind the query (in the encoder, in cross-attention) have vectors
    of their own; W [C, H D] projects it to the heads. u and v [H, D] are added to every query, whatever its position.

    W belongs to a layer, as in the paper. So do u and v, which the paper shares among layers.

    q, k [B, H, T, D], positions [B|1, T] → [B, H, Tq, Tk], by way of the product of each query with each of the n
    distances from the smallest to the largest that occurs: B · H · Tq · n numbers, n being Tq + Tk − 1 for positions in
    sequence, and never more than there are pairs of positions.

    Options: `base` sets the longest wavelength of R, about 2π · base.

    Raises:
        ValueError: `base` is not positive.
    """

    per_layer = True

    def __init__(self, d_model: int, num_heads: int, head_dim: int, base: float = 10000.0):
        super().__init__()
        self.sinusoid = Sinusoid(d_model, base)
        self.relative = Linear(d_model, num_heads * head_dim, bias=False)
        self.u, self.v = (no_decay(self.create_parameter([num_heads, head_dim])) for _ in range(2))

    def scores(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        batch, heads, length, width = q.shape
        distances, index = _distances(q_positions, k_positions)
        r = self.relative(self.sinusoid(distances).astype(self.u.dtype))  # [n, H·D]
        r = r.reshape([-1, heads, width]).transpose([1, 0, 2])  # [n, H·D] -> [H, n, D]
        rows = q.transpose([1, 2, 0, 3]).reshape([heads, length * batch, width])  # [B, H, Tq, D] -> [H, Tq·B, D]
        rows = rows + paddle.matmul(paddle.ones([heads, length * batch, 1], q.dtype), self.v.unsqueeze(1))
        product = paddle.matmul(r, rows, transpose_y=True)  # [H, n, Tq·B]
        return _pick(product, index, batch) + self._content(k)

    def _content(self, k: Tensor) -> Tensor:
        """u · k_j, [B, H, 1, Tk]."""
        batch, heads, _, width = k.shape
        u = paddle.matmul(paddle.ones([batch, 1], k.dtype), self.u.reshape([1, -1]))  # [B, H·D]
        return paddle.matmul(u.reshape([batch, heads, 1, width]), k, transpose_y=True)  # [B, H, 1, Tk]


def _distances(q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
    """Distances [n] among which are all i − j, and where each pair's is, [B|1, Tq, Tk]; int64."""
    distance = q_positions.unsqueeze(2) - k_positions.unsqueeze(1)  # [B|1, Tq, Tk]
    lowest, highest = int(distance.min()), int(distance.max())
    if highest - lowest < distance.size:
        return paddle.arange(lowest, highest + 1, dtype="int64"), distance - lowest
    return distance.reshape([-1]), paddle.arange(distance.size, dtype="int64").reshape(distance.shape)


def _pick(product: Tensor, index: Tensor, batch: int) -> Tensor:
    """product [H, n, Tq·B] and the distance of each pair [B|1, Tq, Tk] → [B, H, Tq, Tk]. Sentences that share positions
    are picked together, as rows."""
    heads, distances = product.shape[:2]
    apart, queries, keys = index.shape
    h, i, b = (paddle.arange(size, dtype="int64") for size in (heads, queries, apart))
    row = h.reshape([1, -1, 1, 1]) * distances + index.unsqueeze(1)  # [B|1, H, Tq, Tk]
    row = (row * queries + i.reshape([1, 1, -1, 1])) * apart + b.reshape([-1, 1, 1, 1])
    picked = F.embedding(row, product.reshape([-1, batch // apart]))  # [B|1, H, Tq, Tk, 1|B]
    return picked.transpose([0, 4, 1, 2, 3]).reshape([batch, heads, queries, keys])
