"""T5's relative positions: a learned bias for each range of distances."""

from __future__ import annotations

import itertools
import math

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_tfm.language import _
from paddle_tfm.protocols import LayerSite, PositionalEncoding, no_decay
from paddle_tfm.validators import between


def bucket(distance: np.ndarray, buckets: int, max_distance: int) -> np.ndarray:
    """Where distances ≥ 0 belong: half of the buckets hold one distance each, from 0 on; the borders of the others
    rise by a constant factor, and what lies at `max_distance` or beyond is in the last.

    With e = buckets // 2 this is e + ⌊(buckets − e) log(distance / e) / log(max_distance / e)⌋ from e on, by borders in
    whole numbers, so that no distance is on the wrong side of one by rounding.
    """
    exact = buckets // 2
    borders = [_border(t, exact, buckets - exact, max_distance) for t in range(1, buckets - exact)]
    return np.where(distance < exact, distance, exact + np.searchsorted(borders, distance, side="right"))


def _border(t: int, exact: int, rest: int, max_distance: int) -> int:
    """The least d with (d / exact)^rest ≥ (max_distance / exact)^t."""
    nearly, most = math.floor(exact * (max_distance / exact) ** (t / rest)), max_distance**t * exact**rest
    return next(d for d in itertools.count(nearly - 1) if d**rest * exact**t >= most)


class T5(PositionalEncoding):
    """A trained bias on the scores for each head and range of distances (Raffel 2020, arXiv:1910.10683).

    bias[h, i, j] = table[bucket(j − i), h]. Where attention is causal, i − j ≥ 0 has all buckets: the first half of
    them hold one distance each, the others ranges that grow up to `max_distance`, beyond which all distances share the
    last. Elsewhere the two directions have half of the buckets each. One table [buckets, H] serves all layers of a
    stack.

    q_positions [B|1, Tq], k_positions [B|1, Tk] → [B|1, H, Tq, Tk]. The scores are divided by sqrt(D) before the bias
    is added; T5 itself does not divide them, and starts from smaller weights instead.

    Options: `buckets` is how many ranges there are, `max_distance` where the last one begins.

    Raises:
        ValueError: `buckets` is odd or not in [4, 1024]; `max_distance` is not above the distances that have a bucket
            each, or above 1,000,000.
    """

    def __init__(self, num_heads: int, site: LayerSite, buckets: int = 32, max_distance: int = 128):
        super().__init__()
        between("[4, 1024]", buckets=buckets)
        if buckets % 2:
            raise ValueError(_("`buckets` must be even, but is {buckets}").format(buckets=buckets))
        per_direction = buckets if site.causal else buckets // 2
        if max_distance <= per_direction // 2:
            text = _("`max_distance` must be above {per_direction}, but is {max_distance}")
            raise ValueError(text.format(per_direction=per_direction // 2, max_distance=max_distance))
        between("[1, 1000000]", max_distance=max_distance)
        self.max_distance, self.causal = max_distance, site.causal
        self.table = no_decay(self.create_parameter([buckets, num_heads]))
        index = bucket(np.arange(max_distance + 1), per_direction, max_distance)
        later = np.zeros_like(index) if site.causal else per_direction + index  # of what lies behind the query
        by_distance = np.concatenate([index[:0:-1], index[:1], later[1:]])  # j − i from −max_distance to max_distance
        self.register_buffer("buckets", paddle.to_tensor(by_distance.astype(np.int64)), persistable=False)

    def bias(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        ahead = k_positions.unsqueeze(1) - q_positions.unsqueeze(2)  # j − i, [B|1, Tq, Tk]
        index = ahead.clip(-self.max_distance, self.max_distance) + self.max_distance
        by_distance = F.embedding(self.buckets, self.table)  # [2 max_distance + 1, H]
        return F.embedding(index, by_distance).transpose([0, 3, 1, 2])  # [B|1, Tq, Tk, H] -> [B|1, H, Tq, Tk]
