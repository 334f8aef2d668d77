"""The feed-forward sublayer of 2017 in a training step as one function, its two products in it."""

from __future__ import annotations

import math

import numpy as np
from paddle import Tensor

from paddle_tfm import fused, paddle_compat
from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.onednn import affine, kernels, products
from paddle_tfm.onednn.primitives import address


def forward(inner: Linear, dropout: Dropout, output: Linear, x: Tensor) -> Tensor | None:
    """drop(max(0, inner(x))) through `output`; None where it is not computed in one function."""
    layers = inner, output
    if any(type(layer) is not Linear for layer in layers) or not affine.usable(x, layers):
        return None
    survives, factor = None, 1.0
    if dropout.training and dropout.rate > 0.0:
        count = math.prod(x.shape[:-1]) * inner.weight.shape[1]
        survives, factor = dropout.draw(count)(0, count).view("uint8"), dropout.factor
    return fused.apply(_ReLU(survives, factor), x, *affine.parameters(layers))


class _ReLU(fused.Function):
    """x [..., C], W1 [C, F], W2 [F, C] and their biases → [..., C]. Held are x and the hidden layer after dropout; its
    zeros are those of the gradient."""

    def __init__(self, survives: np.ndarray | None, factor: float):
        self.survives, self.factor, self.kind = survives, factor, products.in_use()

    def forward(self, *inputs: Tensor) -> Tensor:
        x, *rest = inputs
        self.shape, self.x = x.shape, self._factor(affine.rows(x))
        arrays = [np.from_dlpack(each.detach()) for each in rest]
        self.matrices, biases = [self._factor(each) for each in arrays[:2]], arrays[2:] or [None] * 2
        inner, outer = self.matrices
        self.hidden = np.empty((len(self.x), inner.shape[1]), np.float32)
        affine.forward(self.x, inner, biases[0], self.hidden)
        if self.survives is None:
            np.maximum(self.hidden, 0.0, out=self.hidden)
        else:
            start = address(self.hidden)
            operands = [(start, 4), (address(self.survives), 1), (start, 4)]
            kernels.in_pieces(lambda size: kernels.masked(size, self.factor, True), self.hidden.size, operands)
            self.survives = None
        y = paddle_compat.empty([*x.shape[:-1], outer.shape[1]])
        affine.forward(self._factor(self.hidden), outer, biases[1], affine.rows(y))
        return y

    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        of_y, (inner, outer) = affine.rows(gradient), self.matrices
        up, zero = self._factor(of_y), np.zeros(1, np.float32)
        of_hidden = affine.of_input(up, outer, np.empty_like(self.hidden))
        start = address(of_hidden), 4
        operands = [(address(self.hidden), 4), (address(zero), 0), start, start]
        kernels.in_pieces(lambda size: kernels.where_positive(size, self.factor), of_hidden.size, operands)
        of_x, up_to_hidden = paddle_compat.empty(self.shape), self._factor(of_hidden)
        affine.of_input(up_to_hidden, inner, affine.rows(of_x))
        of_weights = [affine.of_weight(self.x, up_to_hidden), affine.of_weight(self._factor(self.hidden), up)]
        if len(self.wanted) == 3:
            return [of_x, *of_weights]
        return [of_x, *of_weights, affine.of_bias(of_hidden), affine.of_bias(of_y)]

    def _factor(self, x: np.ndarray) -> np.ndarray:
        return affine.factor(x, self.kind)
