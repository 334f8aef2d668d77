"""Attention of a training step as one function: scores, mask, softmax and dropout, and the sum of values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import fused, paddle_compat
from paddle_tfm.onednn import kernels
from paddle_tfm.onednn.primitives import address

HELD = 1 << 24  # weights of at most so many numbers are held for the backward; more are computed again there
BLOCK = 1 << 20  # so many of them at a time, 4 MiB
Draw = Callable[[int, int], np.ndarray]


class Attend(fused.Function):
    """drop(softmax(q kᵀ scale + dense)) v; q [B, H, Tq, D], k [B, H, Tk, D], v [B, H, Tk, W] → [B, H, Tq, W].

    The weights [B, H, Tq, Tk] are computed in blocks of queries, in place, softmax and dropout by oneDNN; the mask is
    added as it is, [B, H|1, Tq|1, Tk]. Held are the weights before dropout and a byte for each, or, of long texts,
    nothing of that size: then the backward computes each block again, from the same draws (Dao 2022, arXiv:2205.14135,
    without its sum over blocks of keys: a row is whole here, so that its softmax is the exact one).

    Args:
        draw: `Dropout.draw` of the weights; None: no dropout. factor: of a weight that survives.
    """

    def __init__(self, dense: Tensor, scale: float, draw: Draw | None, factor: float):
        self.dense, self.scale, self.draw, self.factor = np.from_dlpack(dense.detach()), scale, draw, factor

    def forward(self, *inputs: Tensor) -> Tensor:
        q, self.key, self.value = (each.detach() for each in inputs)
        self.query = q * self.scale
        self.rows = [*q.shape[:3], self.key.shape[2]]  # B, H, Tq, Tk
        self.held: list[tuple[Tensor, np.ndarray | None]] = []
        contexts = []
        for first, last in self._blocks():
            weights, survives = self._weights(first, last)
            contexts.append(paddle.matmul(self._dropped(weights, survives), self.value))
            if math.prod(self.rows) <= HELD:
                self.held.append((weights, survives))
        return contexts[0] if len(contexts) == 1 else paddle.concat(contexts, 2)

    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        queries, of_key, of_value = [], None, None
        for number, (first, last) in enumerate(self._blocks()):
            weights, survives = self.held[number] if self.held else self._weights(first, last)
            up, q = self._part(gradient, first, last), self._part(self.query, first, last)
            for_value = paddle.matmul(self._dropped(weights, survives), up, transpose_x=True)
            of_weights = paddle.matmul(up, self.value, transpose_y=True)
            if survives is not None:
                self._mask(of_weights, survives, of_weights)
            row, (start, of_start) = 4 * self.rows[3], map(address, (weights, of_weights))
            operands = [(start, row), (of_start, row), (of_start, row)]
            kernels.in_pieces(self._softmax_gradient, math.prod(weights.shape[:3]), operands)
            queries.append(paddle.matmul(of_weights, self.key))
            for_key = paddle.matmul(of_weights, q, transpose_x=True)
            of_value = for_value if of_value is None else of_value.add_(for_value)
            of_key = for_key if of_key is None else of_key.add_(for_key)
        of_query = queries[0] if len(queries) == 1 else paddle.concat(queries, 2)
        return [of_query.scale_(self.scale), of_key, of_value]

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """(first, last) of the queries of each block."""
        batch, heads, queries, keys = self.rows
        size = max(1, BLOCK // (batch * heads * keys))
        for first in range(0, queries, size):
            yield first, min(queries, first + size)

    def _part(self, x: Tensor, first: int, last: int) -> Tensor:
        """x [B, H, Tq, D], of these queries, contiguous."""
        return x.contiguous() if last - first == self.rows[2] else x[:, :, first:last].contiguous()

    def _weights(self, first: int, last: int) -> tuple[Tensor, np.ndarray | None]:
        """The softmax of these queries [B, H, t, Tk], and which of it survive dropout."""
        batch, heads, queries, keys = self.rows
        scores = paddle.matmul(self._part(self.query, first, last), self.key, transpose_y=True)
        array = np.from_dlpack(scores)
        array += self.dense if self.dense.shape[2] == 1 else self.dense[:, :, first:last]
        operand = address(scores), 4 * keys
        kernels.in_pieces(lambda rows: kernels.softmax(rows, keys), array.size // keys, [operand, operand])
        if self.draw is None:
            return scores, None
        if last - first == queries:
            return scores, self.draw(0, array.size).view("uint8")
        starts = [(head * queries + first) * keys for head in range(batch * heads)]
        return scores, np.concatenate([self.draw(start, (last - first) * keys) for start in starts]).view("uint8")

    def _dropped(self, weights: Tensor, survives: np.ndarray | None) -> Tensor:
        return weights if survives is None else self._mask(weights, survives, paddle_compat.empty(weights.shape))

    def _mask(self, x: Tensor, survives: np.ndarray, into: Tensor) -> Tensor:
        operands = [(address(x), 4), (address(survives), 1), (address(into), 4)]
        kernels.in_pieces(lambda count: kernels.masked(count, self.factor), survives.size, operands)
        return into

    def _softmax_gradient(self, rows: int):
        return kernels.softmax_gradient(rows, self.rows[3])
