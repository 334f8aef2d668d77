"""Dropout of a training step by oneDNN."""

from __future__ import annotations

import numpy as np
from paddle import Tensor

from paddle_tfm import ops, paddle_compat
from paddle_tfm.kernels import Call, function
from paddle_tfm.kernels.cpu import row_kernels
from paddle_tfm.protocols import Kernel


class DroppedInOnePass(Kernel):
    """x · survives · factor in one pass, both ways; a byte an element is held, where Paddle's product holds two numbers
    of four bytes."""

    of = ops.dropped
    device = "cpu"

    def fits(self, call: Call) -> bool:
        x, survives, _ = call.args
        return call.mode.phase == "step" and survives.size > 0 and row_kernels.usable(x)

    def run(self, call: Call) -> Tensor:
        x, survives, factor = call.args
        return function.apply(_Dropped(survives.reshape(-1).view("uint8"), factor), x)


class _Dropped(function.Function):
    def __init__(self, survives: np.ndarray, factor: float):
        self.survives, self.factor = survives, factor

    def forward(self, *inputs: Tensor) -> Tensor:
        return self._apply(inputs[0])

    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        return [self._apply(gradient)]

    def _apply(self, x: Tensor) -> Tensor:
        x, y = x.contiguous(), paddle_compat.empty(x.shape)
        return row_kernels.mask(x, self.survives, y, self.factor)
