"""The feed-forward sublayer of 2017 in a training step as one function, its two products in it."""

from __future__ import annotations

import math

import numpy as np
from paddle import Tensor

from paddle_tfm import paddle_compat
from paddle_tfm.kernels import Call, function
from paddle_tfm.kernels.cpu import products, row_kernels
from paddle_tfm.kernels.cpu.gemm import gemm
from paddle_tfm.kernels.cpu.primitives import address
from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import Kernel
from paddle_tfm_plugins.feed_forward.relu import ReLU


class ReLUAsOne(Kernel):
    """drop(max(0, x W1 + b1)) W2 + b2 as one function, without an inner norm."""

    of = ReLU
    device = "cpu"

    def fits(self, call: Call) -> bool:
        layer, x = call.layer, call.args[0]
        if call.mode.products is None or layer.inner_norm is not None or 0 in x.shape:
            return False
        if not (call.plain(Linear, layer.inner, layer.output) and call.plain(Dropout, layer.dropout)):
            return False
        return products.usable(x, [layer.inner, layer.output])

    def run(self, call: Call) -> Tensor:
        layer, x = call.layer, call.args[0]
        count = math.prod(x.shape[:-1]) * layer.inner.weight.shape[1]
        draw = call.draw(layer.dropout, count)
        survives = None if draw is None else draw(0, count).view("uint8")
        whole = _ReLU(survives, layer.dropout.factor, call.mode.products)
        return function.apply(whole, x, *products.parameters([layer.inner, layer.output]))


class _ReLU(function.Function):
    """x [..., C], W1 [C, F], W2 [F, C] and their biases → [..., C]. Held are x and the hidden layer after dropout; its
    zeros are those of the gradient."""

    def __init__(self, survives: np.ndarray | None, factor: float, kind: products.Kind):
        self.survives, self.factor, self.kind = survives, factor, kind

    def forward(self, *inputs: Tensor) -> Tensor:
        x, *rest = inputs
        self.shape, self.x = x.shape, self._factor(products.rows(x))
        arrays = [np.from_dlpack(each.detach()) for each in rest]
        self.matrices, biases = [self._factor(each) for each in arrays[:2]], arrays[2:] or [None] * 2
        inner, outer = self.matrices
        self.hidden = np.empty((len(self.x), inner.shape[1]), np.float32)
        gemm(self.x, inner, self.hidden, bias=biases[0])
        if self.survives is None:
            np.maximum(self.hidden, 0.0, out=self.hidden)
        else:
            row_kernels.mask(self.hidden, self.survives, self.hidden, self.factor, relu=True)
            self.survives = None
        y = paddle_compat.empty([*x.shape[:-1], outer.shape[1]])
        gemm(self._factor(self.hidden), outer, products.rows(y), bias=biases[1])
        return y

    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        of_y, (inner, outer) = products.rows(gradient), self.matrices
        up, zero = self._factor(of_y), np.zeros(1, np.float32)
        of_hidden = gemm(up, outer, np.empty_like(self.hidden), transpose_b=True)
        start = address(of_hidden), 4
        operands = [(address(self.hidden), 4), (address(zero), 0), start, start]
        row_kernels.in_pieces(lambda size: row_kernels.where_positive(size, self.factor), of_hidden.size, operands)
        of_x, up_to_hidden = paddle_compat.empty(self.shape), self._factor(of_hidden)
        gemm(up_to_hidden, inner, products.rows(of_x), transpose_b=True)
        of_weights = [products.of_weight(self.x, up_to_hidden), products.of_weight(self._factor(self.hidden), up)]
        if len(self.wanted) == 3:
            return [of_x, *of_weights]
        return [of_x, *of_weights, products.of_bias(of_hidden), products.of_bias(of_y)]

    def _factor(self, x: np.ndarray) -> np.ndarray:
        return products.factor(x, self.kind)
