"""Adam's second moment, factored into row and column means."""

from __future__ import annotations

import math
from typing import ClassVar

import paddle
from paddle import Tensor

from paddle_tfm.validators import between, positive
from paddle_tfm_plugins.optimizer._update_rule import State, UpdateRule


class Adafactor(UpdateRule):
    """Adafactor: a factored second moment, and updates of bounded size (Shazeer 2018, arXiv:1804.04235).

    For a matrix, R and C are moving averages of the means of g² + ε1 over its rows and over its columns, v = R C /
    mean(R); for a vector v is the moving average itself. The average's β at a parameter's t-th update is 1 − t^−decay,
    which needs no bias correction. u = g / sqrt(v), and w -= rate · u / max(1, RMS(u) / clip). n + m numbers are kept
    for a matrix of n · m, and no momentum.

    The trainer sets the rate. `relative` multiplies it by max(ε2, RMS(w)), as in the paper's algorithms 4 and 5; its
    rates are then relative, 1e-2 falling with 1 / sqrt(t), and not comparable with Adam's. A parameter of more than two
    dimensions is a row of matrices, of its last two, clipped as one.

    Options:
        decay: how fast β approaches 1. clip: the largest RMS of an update (d). relative: see above.
        epsilon1: added to g². epsilon2: the smallest RMS(w) that counts, where `relative`.

    Raises:
        ValueError: decay is not in (0, 1]; clip, epsilon1 or epsilon2 is not positive.
    """

    adam_like = True  # but for a relative one, whose updates have the matrix's size
    expected_failures: ClassVar[dict[str, str]] = {"inertia": "it has no momentum"}

    def __init__(
        self,
        decay: float = 0.8,
        clip: float = 1.0,
        relative: bool = False,
        epsilon1: float = 1e-30,
        epsilon2: float = 1e-3,
    ):
        between("(0, 1]", decay=decay)
        positive(clip=clip, epsilon1=epsilon1, epsilon2=epsilon2)
        self.decay, self.clip, self.relative = decay, clip, relative
        self.epsilon1, self.epsilon2 = epsilon1, epsilon2
        self.adam_like = not relative

    def start(self, parameter: Tensor) -> State:
        if parameter.ndim < 2:
            return {"second": paddle.zeros_like(parameter)}
        *matrices, rows, columns = parameter.shape
        return {
            "rows": paddle.zeros([*matrices, rows, 1], parameter.dtype),
            "columns": paddle.zeros([*matrices, 1, columns], parameter.dtype),
        }

    def update(self, parameter: Tensor, gradient: Tensor, state: State, t: int, rate: float) -> None:
        beta = 1.0 - t**-self.decay
        square = gradient * gradient + self.epsilon1
        if parameter.ndim < 2:
            _average(state["second"], square, beta)
            root = paddle.rsqrt(state["second"])
        else:
            # Means by a matmul with 1 / number; their outer product is not formed: ε1² underflows in float32.
            rows, columns = parameter.shape[-2:]
            over_columns = paddle.full([columns, 1], 1.0 / columns, parameter.dtype)
            over_rows = paddle.full([1, rows], 1.0 / rows, parameter.dtype)
            _average(state["rows"], paddle.matmul(square, over_columns), beta)
            _average(state["columns"], paddle.matmul(over_rows, square), beta)
            ratio = state["rows"] / paddle.matmul(over_rows, state["rows"])  # R / mean(R)
            root = paddle.matmul(paddle.rsqrt(ratio), paddle.rsqrt(state["columns"]))
        step = gradient * root
        if self.relative:
            rate *= max(self.epsilon2, root_mean_square(parameter))
        parameter.subtract_(step * (rate / max(1.0, root_mean_square(step) / self.clip)))


def _average(average: Tensor, new: Tensor, beta: float) -> None:
    average.scale_(beta).add_(new * (1.0 - beta))


def root_mean_square(x: Tensor) -> float:
    """RMS over all of a tensor."""
    flat = x.flatten()
    return math.sqrt(float(paddle.matmul(flat, flat)) / flat.shape[0])
