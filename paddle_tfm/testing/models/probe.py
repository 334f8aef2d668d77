"""An encoding that is nobody's: what attentions are checked with, acting through every hook by distances."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.protocols import PositionalEncoding


class Probe(PositionalEncoding):
    """Fixed functions of distances: queries and keys turned, a bias and terms of the scores and of the values.

    Options:
        hooks: through which it acts, of "embed", "rotate", "bias", "scores", "values".
    """

    def __init__(self, num_heads: int, head_dim: int, hooks: list[str]):
        super().__init__()
        self.hooks, self.num_heads, self.head_dim = frozenset(hooks), num_heads, head_dim
        rng = np.random.default_rng(6)
        self._content = rng.normal(size=(2, head_dim)) / np.sqrt(head_dim)

    def uses(self) -> frozenset[str]:
        return self.hooks

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        if "embed" not in self.hooks:
            return x
        angle = positions.unsqueeze(-1).astype(x.dtype) * 0.7 + paddle.arange(x.shape[-1]).astype(x.dtype)
        return x + paddle.sin(angle)

    def _turn(self, x: Tensor, positions: Tensor) -> Tensor:
        """The first two channels turned by 0.6 a position."""
        if "rotate" not in self.hooks or self.head_dim < 2:
            return x
        angle = positions.unsqueeze(1).astype(x.dtype) * 0.6  # [B|1, 1, T]
        cos, sin = paddle.cos(angle), paddle.sin(angle)
        first, second = x[..., 0] * cos - x[..., 1] * sin, x[..., 0] * sin + x[..., 1] * cos
        return paddle.concat([first.unsqueeze(-1), second.unsqueeze(-1), x[..., 2:]], -1)

    def query(self, q: Tensor, positions: Tensor) -> Tensor:
        return self._turn(q, positions)

    def key(self, k: Tensor, positions: Tensor) -> Tensor:
        return self._turn(k, positions)

    def _distance(self, q_positions: Tensor, k_positions: Tensor, dtype) -> Tensor:
        """j − i [B|1, 1, Tq, Tk]"""
        return (k_positions.unsqueeze(1) - q_positions.unsqueeze(2)).unsqueeze(1).astype(dtype)

    def bias(self, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        if "bias" not in self.hooks:
            return None
        distance = self._distance(q_positions, k_positions, paddle.get_default_dtype())
        slopes = paddle.arange(1, self.num_heads + 1).astype(distance.dtype).reshape([1, -1, 1, 1])
        return -0.2 * slopes * distance.abs()

    def scores(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        if "scores" not in self.hooks:
            return None
        content = paddle.matmul(q, paddle.to_tensor(self._content[0], q.dtype).unsqueeze(-1))  # [B, H, Tq, 1]
        return 3.0 * content * paddle.sin(self._distance(q_positions, k_positions, q.dtype) * 0.5)

    def values(self, weights: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        if "values" not in self.hooks:
            return None
        far = paddle.sin(self._distance(q_positions, k_positions, weights.dtype) * 0.5)
        return (weights * far).sum(-1, keepdim=True) * paddle.to_tensor(self._content[1], weights.dtype)
