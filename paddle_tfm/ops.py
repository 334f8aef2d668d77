"""Ops: what formulas are written with. Products, sums over rows, softmaxes and choices of tokens.

Each is a line of Paddle, and the place where a kernel may compute it faster (`paddle_tfm.kernels`). Rows are [N, C].
Arguments are given by position.
"""

from __future__ import annotations

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor
from paddle.utils.dlpack import from_dlpack

from paddle_tfm.kernels import op

TINY = 1e-12  # added to a squared length, so that a vector of zeros is not divided by 0

# ------------------------------------------------------------------------------------------------- products and dropout


@op
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, transpose: bool = False) -> Tensor:
    """x [..., I] · weight [I, O] + bias [O] → [..., O]; with `transpose` the weight is [O, I]."""
    if not transpose:
        return F.linear(x, weight, bias)
    y = paddle.matmul(x, weight, transpose_y=True)
    return y if bias is None else y + bias


@op
def dropped(x: Tensor, survives: np.ndarray, factor: float) -> Tensor:
    """x · factor where `survives` (bool, as many as x has numbers), elsewhere 0."""
    factors = np.multiply(survives.reshape(x.shape), np.float32(factor), dtype=np.float32)
    return x * from_dlpack(factors).astype(x.dtype)


# ------------------------------------------------------------------------------------------------------------ softmaxes


@op
def log_sum_exp(rows: Tensor) -> Tensor:
    """log Σ exp of each row [N, V] → [N, 1]."""
    return paddle.logsumexp(rows, -1, keepdim=True)


@op
def log_softmax_(rows: Tensor) -> Tensor:
    """`log_softmax`. The caller gives `rows` away: the result may lie where they were."""
    return log_softmax(rows)


@op
def softmax_nll(rows: Tensor, target: Tensor) -> Tensor:
    """−log softmax(row)[target] of logits [N, V] and target int64 [N] → [N]. The caller gives `rows` away.

    A kernel may take a loss beyond 60 for any number from 60 on; its gradient is exact.
    """
    picked = paddle.take_along_axis(rows, target.unsqueeze(-1), -1, broadcast=False)
    return (log_sum_exp(rows) - picked).squeeze(-1)  # [N, 1] -> [N]


# ------------------------------------------------------------------------------------------------ means, outer products


@op
def mean_over_channels(rows: Tensor) -> Tensor:
    """[N, C] → [N, 1]."""
    return rows.mean(-1, keepdim=True)


@op
def sum_over_rows(weights: Tensor, rows: Tensor) -> Tensor:
    """weights [N, 1], rows [N, C] → their weighted sum [1, C]."""
    return (weights * rows).sum(0, keepdim=True)


@op
def outer(column: Tensor, row: Tensor) -> Tensor:
    """column [N, 1], row [1, C] → [N, C]."""
    return column * row


@op
def add_outer(rows: Tensor, column: Tensor, row: Tensor) -> Tensor:
    """rows [N, C] + column [N, 1] · row [1, C]."""
    return rows + column * row


def log_softmax(rows: Tensor) -> Tensor:
    """log softmax of each row [N, V]."""
    return add_outer(rows, -log_sum_exp(rows), row_of_ones(rows))


def silu(x: Tensor) -> Tensor:
    """x σ(x), elementwise. Not `F.silu`, whose gradient is NaN below −88 on a CPU."""
    return x * F.sigmoid(x)


def flatten(x: Tensor, dtype: paddle.dtype) -> Tensor:
    """x [..., C] as rows [N, C] of `dtype`."""
    rows = x.reshape([-1, x.shape[-1]])  # [..., C] -> [N, C]
    return rows if rows.dtype == dtype else rows.astype(dtype)


def restore(rows: Tensor, x: Tensor) -> Tensor:
    """Rows [N, C] in the shape and dtype of x."""
    rows = rows.reshape(x.shape)  # [N, C] -> [..., C]
    return rows if rows.dtype == x.dtype else rows.astype(x.dtype)


def unit(x: Tensor, length: Tensor | float | None = None) -> Tensor:
    """Vectors x [..., C] of length 1, or of a `length`, one for all or one each [N, 1]; zeros stay zeros."""
    rows = flatten(x, x.dtype)
    factors = paddle.rsqrt(mean_over_channels(paddle.square(rows)) * rows.shape[1] + TINY)  # [N, 1]
    factors = factors if length is None else factors * length
    return restore(rows * outer(factors, row_of_ones(rows)), x)


def column_of_ones(rows: Tensor) -> Tensor:
    """[N, 1]."""
    return paddle.ones([rows.shape[0], 1], rows.dtype)


def row_of_ones(rows: Tensor) -> Tensor:
    """[1, C]."""
    return paddle.ones([1, rows.shape[1]], rows.dtype)


# ----------------------------------------------------------------------------------------------------- choosing columns


@op
def argmax(rows: Tensor) -> np.ndarray:
    """The column of the largest of each row [N, C], the first of equals: int64 [N]."""
    return rows.argmax(-1).numpy()


@op
def top_k(rows: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row [N, C], falling, and their columns int64: [N, k] each, without a gradient. Of equals at
    the end, either may be returned."""
    return rows.detach().topk(k)
