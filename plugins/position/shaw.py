"""Shaw's relative positions: a learned vector for each distance, in the scores and in the values."""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm.protocols import PositionalEncoding, maps_as
from paddle_tfm.validators import between


class Shaw(PositionalEncoding):
    """A trained vector for each clipped distance, added to keys and values (arXiv:1803.02155).

    scores[i, j] += q[i] · key_table[r], output[i] += Σ_j weights[i, j] · value_table[r], with r = clip(j − i, −clip,
    clip) + clip. Tables are [2 clip + 1, D], shared by the heads, and each layer has its own.

    q [B, H, Tq, D], weights [B, H, Tq, Tk], positions [B|1, T] → [B, H, Tq, Tk] and [B, H, Tq, D]. Positions shared by
    the batch ([1, T]) cost Tq · Tk · D numbers; positions for each sentence, B times that.

    Options: `clip` is the distance from which all are equal, to be set well below the length of training if
    longer inputs are to work; `with_values` false leaves the value term out.

    Raises:
        ValueError: `clip` is not in [1, 1000000].
    """

    per_layer = True

    def __init__(self, head_dim: int, clip: int = 16, with_values: bool = True):
        super().__init__()
        between("[1, 1000000]", clip=clip)
        self.clip = clip
        self.key_table = maps_as(self.create_parameter([2 * clip + 1, head_dim]), None)
        self.value_table = maps_as(self.create_parameter([2 * clip + 1, head_dim]), None) if with_values else None

    def uses(self) -> frozenset[str]:
        return frozenset({"scores", "values"}) if self.value_table is not None else frozenset({"scores"})

    def scores(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        vectors = self._vectors(self.key_table, q_positions, k_positions)
        return _for_each_query(q, vectors, transpose=True)

    def values(self, weights: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        if self.value_table is None:
            return None
        return _for_each_query(weights, self._vectors(self.value_table, q_positions, k_positions), transpose=False)

    def _vectors(self, table: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        """The vector of each pair of positions, [B|1, Tq, Tk, D]."""
        distance = k_positions.unsqueeze(1) - q_positions.unsqueeze(2)  # [B|1, Tq, Tk]
        return F.embedding(distance.clip(-self.clip, self.clip) + self.clip, table)


def _for_each_query(x: Tensor, vectors: Tensor, transpose: bool) -> Tensor:
    """x [B, H, Tq, I] times the matrix of its query: vectors [B|1, Tq, I, O] ([B|1, Tq, O, I] with `transpose`) →
    [B, H, Tq, O]. Sentences that share positions are rows of one product."""
    batch, heads, length = x.shape[:3]
    rows = x.reshape([vectors.shape[0], -1, length, x.shape[3]])  # [B, H, Tq, I] -> [B|1, H|B·H, Tq, I]
    product = paddle.matmul(rows.transpose([0, 2, 1, 3]), vectors, transpose_y=transpose)  # [B|1, Tq, H|B·H, O]
    return product.transpose([0, 2, 1, 3]).reshape([batch, heads, length, product.shape[3]])  # -> [B, H, Tq, O]
