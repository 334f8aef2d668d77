"""A learned vector for each position."""

from __future__ import annotations

import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm.protocols import PositionalEncoding, keep_initial, maps_as
from paddle_tfm.validators import at_least, positive


class Learned(PositionalEncoding):
    """A trained vector for each position, added to the embeddings (arXiv:1705.03122).

    x [B, T, C], positions [B|1, T] → x + weight[p], the table being [max_length, C]. It is drawn from N(0, initial²),
    whatever max_length is and the recipe's initializer does: 0.1 is that of the paper's authors
    (fairseq/models/fconv.py).

    Positions from max_length − 1 on share the last row; rows that training never reached keep their initial values, so
    outputs longer than those trained on cannot be expected to work.

    Options: `initial` is the table's deviation at first. (A sinusoid's is 0.7.)

    Raises:
        ValueError: `max_length` is below 1; `initial` is not positive.
    """

    ends_at_max_length = True

    def __init__(self, d_model: int, max_length: int, initial: float = 0.1):
        super().__init__()
        at_least(1, max_length=max_length)
        positive(initial=initial)
        start = nn.initializer.Normal(0.0, initial)
        table = self.create_parameter([max_length, d_model], default_initializer=start)
        self.weight = maps_as(keep_initial(table), None)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        index = positions.clip(0, self.weight.shape[0] - 1).expand(x.shape[:2])  # [B|1, T] -> [B, T]
        return x + F.embedding(index, self.weight)
