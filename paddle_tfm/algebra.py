"""Sums, outer products and the largest over rows of vectors [N, C]: what norms, softmaxes and searches use.

On a CPU, Paddle's reductions over one axis, its broadcasts and their gradients take five to twenty times as long as
the matrix products that give the same numbers; so there they are matrix products. Elsewhere (a GPU rounds the factors
of a matrix product to TF32) they are plain. A test says that both agree.
"""

from __future__ import annotations

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import place


def by_products(rows: Tensor) -> bool:
    """Whether matrix products are the fast way where this tensor lives."""
    return place.on_cpu(rows)


def flatten(x: Tensor, dtype: paddle.dtype) -> Tensor:
    """x [..., C] as rows [N, C] of `dtype`."""
    rows = x.reshape([-1, x.shape[-1]])  # [..., C] -> [N, C]
    return rows if rows.dtype == dtype else rows.astype(dtype)


def restore(rows: Tensor, x: Tensor) -> Tensor:
    """Rows [N, C] in the shape and dtype of x."""
    rows = rows.reshape(x.shape)  # [N, C] -> [..., C]
    return rows if rows.dtype == x.dtype else rows.astype(x.dtype)


def column_of_ones(rows: Tensor) -> Tensor:
    """[N, 1]."""
    return paddle.ones([rows.shape[0], 1], rows.dtype)


def row_of_ones(rows: Tensor) -> Tensor:
    """[1, C]."""
    return paddle.ones([1, rows.shape[1]], rows.dtype)


def mean_over_channels(rows: Tensor) -> Tensor:
    """[N, C] → [N, 1]."""
    if by_products(rows):
        width = rows.shape[1]
        return paddle.matmul(rows, paddle.full([width, 1], 1.0 / width, rows.dtype))
    return rows.mean(-1, keepdim=True)


def sum_over_rows(weights: Tensor, rows: Tensor) -> Tensor:
    """weights [N, 1], rows [N, C] → their weighted sum [1, C]."""
    if by_products(rows):
        return paddle.matmul(weights, rows, transpose_x=True)
    return (weights * rows).sum(0, keepdim=True)


def outer(column: Tensor, row: Tensor) -> Tensor:
    """column [N, 1], row [1, C] → [N, C]."""
    return paddle.matmul(column, row) if by_products(column) else column * row


def add_outer(rows: Tensor, column: Tensor, row: Tensor) -> Tensor:
    """rows [N, C] + column [N, 1] · row [1, C]."""
    return paddle.addmm(rows, column, row) if by_products(rows) else rows + column * row


def largest(rows: Tensor) -> Tensor:
    """The largest of each row [N, C] → [N, 1], without a gradient. On a CPU NumPy computes it, six times as fast."""
    if not by_products(rows):
        return rows.detach().max(-1, keepdim=True)
    return paddle.to_tensor(_array(rows).max(1, keepdims=True))


def argmax(rows: Tensor) -> np.ndarray:
    """The column of the largest of each row [N, C], the first of equals: int64 [N]."""
    return _array(rows).argmax(1) if by_products(rows) else rows.argmax(-1).numpy()


def pick(rows: Tensor, columns: np.ndarray) -> np.ndarray:
    """The number in one column of each row [N, C], columns int64 [N] → [N]."""
    if by_products(rows):
        return _array(rows)[np.arange(len(columns)), columns]
    return rows.take_along_axis(paddle.to_tensor(columns).unsqueeze(1), 1)[:, 0].numpy()


BLOCK = 128  # columns in a block, whose largest is computed first; near the square root of a usual vocabulary


def top_k(rows: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row [N, C], falling, and their columns int64: [N, k] each, without a gradient.

    On a CPU NumPy looks at a row in blocks: at least k numbers are no smaller than the k-th of the blocks' maxima, and
    few are, so that only those are sorted. Of equals at the end, either may be returned.
    """
    number, width = rows.shape
    if not by_products(rows) or width <= 2 * k * BLOCK:
        return rows.detach().topk(k)
    array = _array(rows)
    maxima = np.maximum.reduceat(array, np.arange(0, width, BLOCK), axis=1)  # [N, C / BLOCK]
    threshold = np.partition(maxima, -k, axis=1)[:, -k, None]
    row, column = np.divmod(np.flatnonzero(~(array < threshold)), width)  # what is no number counts as large
    order = np.lexsort((-array[row, column], row))
    best = order[np.searchsorted(row, np.arange(number))[:, None] + np.arange(k)]  # [N, k]
    return paddle.to_tensor(array[row[best], column[best]]), paddle.to_tensor(column[best])


def _array(rows: Tensor) -> np.ndarray:
    """The numbers of a tensor on the CPU, where they lie: only to be read."""
    return np.from_dlpack(rows.detach())
