"""The encoding of one position for all."""

from __future__ import annotations

from typing import ClassVar

import paddle
from paddle import Tensor

from paddle_tfm_plugins.position.sinusoidal import Sinusoidal


class OneVector(Sinusoidal):
    """Wrong on purpose: the vector of one position is added to all, as indexing a table by a length easily does.

    Symptom: it learns which words, and not their order: a fair token accuracy, a poor exact match.
    x [B, T, C] → [B, T, C].
    """

    expected_failures: ClassVar[dict[str, str]] = {
        "positions_differ": "the mistake: all positions get one vector",
        "order_matters": "the mistake: all positions get one vector",
        "direction": "the mistake: all positions get one vector",
    }

    def __init__(self, d_model: int):
        super().__init__(d_model)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return super().embed(x, paddle.full_like(positions, 7))
