"""Means, sums, outer products and choices over rows on a CPU.

Paddle's reductions over one axis, its broadcasts and their gradients take five to twenty times as long there as the
matrix products that give the same numbers.
"""

from __future__ import annotations

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import ops, place
from paddle_tfm.kernels import Call
from paddle_tfm.protocols import Kernel

BLOCK = 128  # columns in a block, whose largest is computed first; near the square root of a usual vocabulary


class _OnCPU(Kernel):
    device = "cpu"

    def fits(self, call: Call) -> bool:
        return place.on_cpu(call.args[0])


class MeanByProduct(_OnCPU):
    """rows [N, C] · 1/C [C, 1]."""

    of = ops.mean_over_channels

    def run(self, call: Call) -> Tensor:
        (rows,) = call.args
        width = rows.shape[1]
        return paddle.matmul(rows, paddle.full([width, 1], 1.0 / width, rows.dtype))


class SumByProduct(_OnCPU):
    """weightsᵀ [1, N] · rows [N, C]."""

    of = ops.sum_over_rows

    def run(self, call: Call) -> Tensor:
        weights, rows = call.args
        return paddle.matmul(weights, rows, transpose_x=True)


class OuterByProduct(_OnCPU):
    """column [N, 1] · row [1, C]."""

    of = ops.outer

    def run(self, call: Call) -> Tensor:
        column, row = call.args
        return paddle.matmul(column, row)


class AddOuterByProduct(_OnCPU):
    """rows [N, C] + column [N, 1] · row [1, C], added up in the product."""

    of = ops.add_outer

    def run(self, call: Call) -> Tensor:
        return paddle.addmm(*call.args)


class ArgmaxByNumPy(_OnCPU):
    """NumPy looks through the numbers where they lie."""

    of = ops.argmax

    def run(self, call: Call) -> np.ndarray:
        return _array(call.args[0]).argmax(1)


class TopKByBlocks(_OnCPU):
    """NumPy looks at a row in blocks: at least k numbers are no smaller than the k-th of the blocks' maxima, and few
    are, so that only those are sorted."""

    of = ops.top_k

    def fits(self, call: Call) -> bool:
        rows, k = call.args
        return place.on_cpu(rows) and rows.shape[0] > 0 and rows.shape[1] > 2 * k * BLOCK

    def run(self, call: Call) -> tuple[Tensor, Tensor]:
        rows, k = call.args
        array, (number, width) = _array(rows), rows.shape
        maxima = np.maximum.reduceat(array, np.arange(0, width, BLOCK), axis=1)  # [N, C / BLOCK]
        threshold = np.partition(maxima, -k, axis=1)[:, -k, None]
        row, column = np.divmod(np.flatnonzero(~(array < threshold)), width)  # what is no number counts as large
        order = np.lexsort((-array[row, column], row))
        best = order[np.searchsorted(row, np.arange(number))[:, None] + np.arange(k)]  # [N, k]
        return paddle.to_tensor(array[row[best], column[best]]), paddle.to_tensor(column[best])


def _array(rows: Tensor) -> np.ndarray:
    """The numbers of a tensor on the CPU, where they lie: only to be read."""
    return np.from_dlpack(rows.detach())
