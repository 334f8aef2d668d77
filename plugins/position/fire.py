"""FIRE: a small network that maps relative distances to biases."""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm import memory, place
from paddle_tfm.layers import Linear
from paddle_tfm.protocols import PositionalEncoding, maps_as
from paddle_tfm.validators import matrix_side, positive

EPS = 1e-6  # added to the divisor


class FIRE(PositionalEncoding):
    """A bias on the scores that a small network computes from the relative distance (Li 2023, arXiv:2310.04418).

    bias[h, i, j] = f_h(ψ(i − j) / ψ(max(L, i))) with ψ(x) = log(c x + 1): divided by what the distance could be at
    most, the input stays in [0, 1] however long a text gets, and positions below the threshold L are distinguished as
    usual. f is a network 1 → `width` → H with a ReLU, without a bias at its end, which a softmax would forget.

    Where attention is not causal, the distance is |i − j| and its divisor ψ(max(L, i, j)): both directions get the same
    bias, the input stays in [0, 1], and what is causal is not changed by it.

    c and L are the absolute values of trained numbers, c = |c'| and L = |l'| · `threshold`; c' starts at 0.1 and l' at
    1. The hidden layer's biases start uniform in [−1, 1], so that the units bend at different distances.

    q_positions [B|1, Tq], k_positions [B|1, Tk] → [B|1, H, Tq, Tk], by way of [B|1, Tq, Tk, width].

    Options:
        width: of the hidden layer.
        threshold: what L starts from.

    Raises:
        ValueError: `width` is below 1 or above 65,536, or `threshold` is not positive.
    """

    def __init__(self, num_heads: int, width: int = 32, threshold: float = 512.0):
        super().__init__()
        matrix_side(width=width)
        positive(threshold=threshold)
        self.threshold = threshold
        self.c = self.create_parameter([1], default_initializer=nn.initializer.Constant(0.1))
        self.factor = self.create_parameter([1], default_initializer=nn.initializer.Constant(1.0))
        self.inner = Linear(1, width)
        self.inner.bias.set_value(paddle.uniform([width], self.inner.bias.dtype, -1.0, 1.0))
        self.outer = Linear(width, num_heads, bias=False)
        for part in (self.inner, self.outer):
            maps_as(part.weight, "input")

    def bias(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        rows, queries, keys = q_positions.shape[0], q_positions.shape[1], k_positions.shape[1]
        if place.on_cpu(self.c):
            size = 4 * 2 * self.inner.weight.shape[1] * rows * queries * keys  # the hidden layer, and its ReLU
            memory.require(size, f"a bias of {queries:,} tokens to {keys:,}")
        i, j = q_positions.unsqueeze(2), k_positions.unsqueeze(1)  # [B|1, Tq, 1], [B|1, 1, Tk]
        distance, last = (i - j).abs().astype(self.c.dtype), paddle.maximum(i, j).astype(self.c.dtype)
        most = self._psi(paddle.maximum(last, self.factor.abs() * self.threshold)) + EPS  # [B|1, Tq, Tk]
        share = (self._psi(distance) / most).unsqueeze(-1)  # [B|1, Tq, Tk, 1]
        return self.outer(F.relu(self.inner(share))).transpose([0, 3, 1, 2])  # [B|1, Tq, Tk, H] -> [B|1, H, Tq, Tk]

    def _psi(self, x: Tensor) -> Tensor:
        return paddle.log1p(self.c.abs() * x)
