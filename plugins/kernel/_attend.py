"""Attention of a training step as one function: scores, mask, softmax and dropout, and the sum of values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import paddle
from paddle import Tensor
from paddle.utils.dlpack import from_dlpack

from paddle_tfm import paddle_compat
from paddle_tfm.kernels import Call, function
from paddle_tfm.kernels.cpu import row_kernels
from paddle_tfm.kernels.cpu.primitives import address
from paddle_tfm.layers import Dropout

HELD = 1 << 24  # weights of at most so many numbers are held for the backward; more are computed again there
BLOCK = 1 << 20  # so many of them at a time, 4 MiB
SMALL = 1 << 18  # a head's product of at most so many multiplications is NumPy's, where the heads lie
Draw = Callable[[int, int], np.ndarray]


def nothing_between(call: Call) -> bool:
    """Whether a call of `attend` has no term of the encoding but a bias that is not learned, a scale that is a number,
    and nobody who looks at its weights."""
    q, kv, info, mask, dropout, tap, scale = call.args
    if not call.plain(Dropout, dropout) or tap.recording or isinstance(scale, Tensor):
        return False
    if 0 in (*q.shape, *kv.key.shape):
        return False
    return not info.encoding.uses() & {"scores", "values"} and mask.dense(q.dtype).stop_gradient


class Weights:
    """The weights drop(softmax(q kᵀ + dense)) [B, H, Tq, Tk] of arrays q [B, H, Tq, D] and k [B, H, Tk, D], which need
    not be dense, and what they gather from v [B, H, Tk, W].

    They are computed in blocks of queries, in place, softmax and dropout by oneDNN; the mask is added as it is,
    [B, H|1, Tq|1, Tk]. Held are the weights before dropout and a byte for each, or, of long texts, nothing of that
    size: then the backward computes each block again, from the same draws (Dao 2022, arXiv:2205.14135, without its sum
    over blocks of keys: a row is whole here, so that its softmax is the exact one).

    Args:
        draw: `Dropout.draw` of the weights; None: no dropout. factor: of a weight that survives.
    """

    def __init__(self, dense: Tensor, draw: Draw | None, factor: float):
        self.dense, self.draw, self.factor = np.from_dlpack(dense.detach()), draw, factor

    def gather(self, q: np.ndarray, k: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
        """out [B, H, Tq, W] = the weights times v. The arrays are held for the backward."""
        self.q, self.k, self.v = q, k, v
        self.shape = *q.shape[:3], k.shape[2]
        self.held: list[tuple[np.ndarray, np.ndarray | None]] = []
        for first, last in self._blocks():
            weights, survives = self._block(first, last)
            _product(self._dropped(weights, survives), v, out=out[:, :, first:last])
            if math.prod(self.shape) <= HELD:
                self.held.append((weights, survives))

    def gradients(self, up: np.ndarray, of_q: np.ndarray, of_k: np.ndarray, of_v: np.ndarray) -> None:
        """The gradients of q, k and v from the output's, `up`, into arrays of their shapes."""
        keys = self.shape[3]
        for number, (first, last) in enumerate(self._blocks()):
            weights, survives = self.held[number] if self.held else self._block(first, last)
            of_out = up[:, :, first:last]
            of_weights = _product(of_out, self.v, transpose_b=True)
            dropped = self._dropped(weights, survives)
            if survives is not None:
                row_kernels.mask(of_weights, survives, of_weights, self.factor)
            row, (start, of_start) = 4 * keys, map(address, (weights, of_weights))
            # The rows' gradients of the softmax lie where those of the weights were.
            operands = [(start, row), (of_start, row), (of_start, row)]
            self._add(dropped, of_out, of_v, first)
            row_kernels.in_pieces(lambda rows: row_kernels.softmax_gradient(rows, keys), weights.size // keys, operands)
            _product(of_weights, self.k, out=of_q[:, :, first:last])
            self._add(of_weights, self.q[:, :, first:last], of_k, first)

    def _add(self, a: np.ndarray, b: np.ndarray, total: np.ndarray, first: int) -> None:
        """total = aᵀ b of the first block, and that much more of each other one."""
        if first:
            total += _product(a, b, transpose_a=True)
        else:
            _product(a, b, transpose_a=True, out=total)

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """(first, last) of the queries of each block."""
        batch, heads, queries, keys = self.shape
        size = max(1, BLOCK // (batch * heads * keys))
        for first in range(0, queries, size):
            yield first, min(queries, first + size)

    def _block(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray | None]:
        """The softmax of these queries [B, H, t, Tk], and which of it survive dropout."""
        batch, heads, queries, keys = self.shape
        scores = _product(self.q[:, :, first:last], self.k, transpose_b=True)
        scores += self.dense if self.dense.shape[2] == 1 else self.dense[:, :, first:last]
        row_kernels.softmax_in_place(scores)
        if self.draw is None:
            return scores, None
        if last - first == queries:
            return scores, self.draw(0, scores.size).view("uint8")
        starts = [(head * queries + first) * keys for head in range(batch * heads)]
        return scores, np.concatenate([self.draw(start, (last - first) * keys) for start in starts]).view("uint8")

    def _dropped(self, weights: np.ndarray, survives: np.ndarray | None) -> np.ndarray:
        return weights if survives is None else row_kernels.mask(weights, survives, np.empty_like(weights), self.factor)


def _product(
    a: np.ndarray,
    b: np.ndarray,
    transpose_a: bool = False,
    transpose_b: bool = False,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """a b of each head, [B, H, I, J] · [B, H, J, K] or their transposes, written to `out` if there is one.

    NumPy multiplies small matrices where they lie, in less time than it takes to make them dense. Large ones, of which
    it would take several threads, are copied for Paddle.
    """
    inner, rows = a.shape[2:] if transpose_a else a.shape[:1:-1]
    if rows * inner * b.shape[2 if transpose_b else 3] <= SMALL:
        a, b = (a.swapaxes(2, 3) if transpose_a else a), (b.swapaxes(2, 3) if transpose_b else b)
        with np.errstate(invalid="ignore", over="ignore"):  # of a run that diverges, which the trainer says
            return np.matmul(a, b) if out is None else np.matmul(a, b, out=out)
    factors = (from_dlpack(np.ascontiguousarray(each)) for each in (a, b))
    product = np.from_dlpack(paddle.matmul(*factors, transpose_a, transpose_b))
    if out is None:
        return product
    np.copyto(out, product)
    return out


class Attend(function.Function):
    """`Weights` of q · scale and k, times v: q [B, H, Tq, D], k [B, H, Tk, D], v [B, H, Tk, W] → [B, H, Tq, W]."""

    def __init__(self, weights: Weights, scale: float):
        self.weights, self.scale = weights, scale

    def forward(self, *inputs: Tensor) -> Tensor:
        q, k, v = (each.detach().contiguous() for each in inputs)
        self.shapes = q.shape, k.shape, v.shape
        y = paddle_compat.empty([*q.shape[:3], v.shape[3]])
        self.weights.gather(*map(np.from_dlpack, (q * self.scale, k, v, y)))
        return y

    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        gradients = [paddle_compat.empty(shape) for shape in self.shapes]
        self.weights.gradients(*map(np.from_dlpack, (gradient.detach().contiguous(), *gradients)))
        gradients[0].scale_(self.scale)
        return [*gradients]
