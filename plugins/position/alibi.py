"""ALiBi: scores that fall with distance, with a slope for each head."""

from __future__ import annotations

import paddle
from paddle import Tensor

from paddle_tfm.protocols import LayerSite, PositionalEncoding
from paddle_tfm.validators import at_least


def slopes(num_heads: int) -> list[float]:
    """2^(−8h / H) for h = 1 … H, the paper's geometric sequence for any H. (Its authors' code takes another for an H
    that is no power of two; for powers of two both are the same.)"""
    return [2.0 ** (-8.0 * h / num_heads) for h in range(1, num_heads + 1)]


class ALiBi(PositionalEncoding):
    """A penalty on distance, added to the scores: attention with linear biases (arXiv:2108.12409).

    bias[h, i, j] = −slope[h] · (i − j) where attention is causal, −slope[h] · |i − j| elsewhere. Slopes: 2^(−8h / H), h
    = 1 … H (section 3).

    q_positions [B|1, Tq], k_positions [B|1, Tk] → [B|1, H, Tq, Tk]. There is nothing to learn.

    Raises:
        ValueError: `num_heads` is below 1.
    """

    def __init__(self, num_heads: int, site: LayerSite):
        super().__init__()
        at_least(1, num_heads=num_heads)
        self.causal = site.causal
        self.register_buffer(
            "slopes", paddle.to_tensor(slopes(num_heads), paddle.get_default_dtype()), persistable=False
        )

    def bias(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        ahead = (k_positions.unsqueeze(1) - q_positions.unsqueeze(2)).unsqueeze(1)  # j − i, [B|1, 1, Tq, Tk]
        closeness = ahead if self.causal else -ahead.abs()
        return closeness.astype(self.slopes.dtype) * self.slopes.reshape([1, -1, 1, 1])
