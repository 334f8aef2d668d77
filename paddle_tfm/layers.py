"""The small layers that plugins are built from: `Linear`, `Dropout`, `Embedding`.

They compute what Paddle's own do, with two differences: on a CPU the bias is broadcast with a matmul, because Paddle's
reduction in its gradient is slow (a fifth of a training step); and dropout draws counter-based random numbers
(`paddle_tfm.randomness`). Each fast path has a plain twin beside it, and a test that both agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import is_

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor
from paddle.autograd import PyLayer
from paddle.utils.dlpack import from_dlpack

from paddle_tfm import fused, paddle_compat, place, randomness
from paddle_tfm.onednn import kernels, products
from paddle_tfm.onednn.primitives import address
from paddle_tfm.validators import between


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, transpose: bool = False) -> Tensor:
    """x [..., I] · weight [I, O] + bias [O] → [..., O]; with `transpose` the weight is [O, I].

    In a training step by oneDNN where it is in use (`onednn.products`), otherwise by Paddle. Then the bias is broadcast
    with a matmul while gradients are recorded on a CPU: its gradient is a matmul too, and Paddle's CPU reduction, which
    a broadcast sum would have, takes a fifth of a training step.
    """
    product = products.linear(x, weight, bias, transpose)
    if product is not None:
        return product
    if transpose:
        y = paddle.matmul(x, weight, transpose_y=True)
        return y if bias is None else y + bias
    if bias is None:
        return paddle.matmul(x, weight)
    if not paddle.is_grad_enabled():
        return paddle_compat.linear(x, weight, bias)
    if not place.on_cpu(x):
        return F.linear(x, weight, bias)
    ones = paddle.ones([*x.shape[:-1], 1], x.dtype)
    return paddle.matmul(x, weight).add_(paddle.matmul(ones, bias.unsqueeze(0)))


class Linear(paddle_compat.Layer):
    """y = x W + b, W [in_features, out_features]; the bias starts at zero."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True):
        super().__init__()
        self.weight = self.create_parameter([in_features, out_features])
        self.bias = self.create_parameter([out_features], is_bias=True) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]} -> {self.weight.shape[1]}, bias={self.bias is not None}"


def project_together(layer: paddle_compat.Layer, linears: Sequence[Linear], x: Tensor) -> Tensor | None:
    """The outputs of `linears`, all parts of `layer`, side by side [..., Σ O], in one product; None outside of a block
    in which weights stay as they are. The matrix is put together once in such a block."""
    kept = paddle_compat.kept(layer)
    if kept is None or paddle.is_grad_enabled():
        return None
    weights, biases = [part.weight for part in linears], [part.bias for part in linears]
    joined = kept.get("joined")
    if joined is None or not all(map(is_, joined[0], [*weights, *biases])):
        present = [bias for bias in biases if bias is not None]
        if present and len(present) < len(biases):
            return None
        bias = paddle.concat(present) if present else None
        joined = kept["joined"] = [*weights, *biases], paddle.concat(weights, 1), bias
    return linear(x, *joined[1:])


class Dropout(paddle_compat.Layer):
    """Inverted dropout: each element is zero with probability `rate`, else divided by 1 − rate; identity at evaluation.

    The mask is a function of (seed, this layer's path, step): the engine sets `path` after building. Outside a training
    run (no `randomness.random_context`) it comes from Paddle's generator.

    Raises:
        ValueError: rate is not in [0, 1).

    Source: Srivastava et al. 2014, JMLR 15.
    """

    def __init__(self, rate: float):
        super().__init__()
        between("[0, 1)", rate=rate)
        self.rate = rate
        self.path = ""

    def forward(self, x: Tensor) -> Tensor:
        return self._drop(x, relu=False)

    def after_relu(self, x: Tensor) -> Tensor:
        """Of max(0, x): on a CPU in one pass, forward and backward, and what is held is the output alone."""
        return self._drop(x, relu=True)

    def _drop(self, x: Tensor, relu: bool) -> Tensor:
        if not self.training or self.rate == 0.0:
            return F.relu(x) if relu else x
        context = randomness.current_context()
        if context is None or not place.on_cpu(x):
            return self._plain(F.relu(x) if relu else x, context)
        survives = self.draw(math.prod(x.shape))(0, math.prod(x.shape))
        if kernels.usable(x):
            return fused.apply((_DroppedReLU if relu else _Dropped)(survives.view("uint8"), self.factor), x)
        return _Masked.apply(F.relu(x) if relu else x, survives.reshape(x.shape), self.factor)

    @property
    def factor(self) -> float:
        """Of an element that survives."""
        return 1.0 / (1.0 - self.rate)

    def draw(self, count: int) -> Callable[[int, int], np.ndarray]:
        """(first, number) → which of so many elements of x survive, from element `first` on, as bools; x has `count`.
        Within a `random_context`, whose draws these are also when it is left."""
        context = randomness.current_context()
        if context is None:
            raise ValueError("elements are drawn within `randomness.random_context`; open one")
        key = (context.seed, "dropout", self.path, context.step, context.micro_batch)
        offset = count * context.first_row // context.rows  # x may have several rows for one of the batch
        threshold = round(self.rate * 65536)  # sixteen random bits an element: the rate is exact to 1/65536
        return lambda first, number: randomness.bits(number, offset + first, *key) >= threshold

    def _plain(self, x: Tensor, context: randomness.RandomContext | None) -> Tensor:
        """Outside a training run, or on a device."""
        if context is not None:
            key = (context.seed, "dropout", self.path, context.step, context.micro_batch)
            paddle.seed(randomness.digest(*key) >> 1)
        return F.dropout(x, self.rate)

    def extra_repr(self) -> str:
        return f"{self.rate}"


class _Dropped(fused.Function):
    """x · mask · factor by oneDNN, in one pass; a byte an element is held."""

    def __init__(self, mask: np.ndarray, factor: float):
        self.mask, self.factor = mask, factor

    def forward(self, *inputs: Tensor) -> Tensor:
        return self._apply(inputs[0], relu=False)

    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        return [self._apply(gradient, relu=False)]

    def _apply(self, x: Tensor, relu: bool) -> Tensor:
        x, y = x.contiguous(), paddle_compat.empty(x.shape)
        operands = [(address(x), 4), (address(self.mask), 1), (address(y), 4)]
        kernels.in_pieces(lambda count: kernels.masked(count, self.factor, relu), self.mask.size, operands)
        return y


class _DroppedReLU(_Dropped):
    """max(0, x) · mask · factor: the output says where the gradient is 0, and it is held anyway, as what is multiplied
    next."""

    def forward(self, *inputs: Tensor) -> Tensor:
        y = self._apply(inputs[0], relu=True)
        self.output, self.mask = y.detach(), self.mask[:0]
        return y

    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        gradient, of_x, zero = gradient.contiguous(), paddle_compat.empty(gradient.shape), np.zeros(1, "float32")
        starts = [(address(each), 4) for each in (self.output, of_x, gradient)]
        operands = [starts[0], (address(zero), 0), *starts[1:]]
        kernels.in_pieces(lambda count: kernels.where_positive(count, self.factor), math.prod(gradient.shape), operands)
        return [of_x]


class _Masked(PyLayer):
    """x times `factor` where `mask`, otherwise 0. Paddle's product would hold x and factors of four bytes an element
    until the gradient is taken; this holds one byte."""

    @staticmethod
    def forward(ctx, x: Tensor, mask: np.ndarray, factor: float) -> Tensor:
        ctx.mask, ctx.factor = mask, factor
        return x * _factors(mask, factor, x.dtype)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        return gradient * _factors(ctx.mask, ctx.factor, gradient.dtype)


def _factors(mask: np.ndarray, factor: float, dtype: paddle.dtype) -> Tensor:
    """`factor` where `mask`, otherwise 0."""
    factors = from_dlpack(np.multiply(mask, np.float32(factor), dtype=np.float32))  # not copied
    return factors if factors.dtype == dtype else factors.astype(dtype)


class Embedding(paddle_compat.Layer):
    """A table [V, C] of token vectors, times sqrt(C) if `scale`. The row of padding is zero and stays so; ids beyond
    the table (words copied from the source) have the vector of the unknown token.

    Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.4.
    """

    def __init__(self, vocab_size: int, d_model: int, pad_id: int, unknown_id: int, scale: bool = True):
        super().__init__()
        self.weight = self.create_parameter([vocab_size, d_model])
        self.pad_id, self.unknown_id = pad_id, unknown_id
        self.factor = math.sqrt(d_model) if scale else 1.0

    def forward(self, ids: Tensor) -> Tensor:
        """ids int64 [B, T] → [B, T, C]."""
        words = self.weight.shape[0]
        if not place.on_cpu(ids) or ids.numpy().max(initial=0) >= words:  # a GPU would have to wait
            ids = paddle.where(ids >= words, paddle.full_like(ids, self.unknown_id), ids)
        x = F.embedding(ids, self.weight, padding_idx=self.pad_id)
        return x * self.factor if self.factor != 1.0 else x

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]} x {self.weight.shape[1]}, times {self.factor:g}"
