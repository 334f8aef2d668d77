"""The small layers that plugins are built from: `Linear`, `Dropout`, `Embedding`.

They compute what Paddle's own do, but that products and dropout are ops, which kernels may compute
(`paddle_tfm.kernels`), and that dropout draws counter-based random numbers (`paddle_tfm.randomness`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_tfm import memory, ops, place, randomness
from paddle_tfm.validators import between


class Layer(nn.Layer):
    """An `nn.Layer` that asks for no more memory than there is."""

    def create_parameter(self, shape: Any, *args: Any, **kwargs: Any) -> Any:
        """A parameter. Raises MemoryError where the memory that is free does not hold it."""
        memory.require(4 * math.prod(shape), f"a parameter of shape {list(shape)}")
        return super().create_parameter(shape, *args, **kwargs)


class Linear(Layer):
    """y = x W + b, W [in_features, out_features]; the bias starts at zero."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True):
        super().__init__()
        self.weight = self.create_parameter([in_features, out_features])
        self.bias = self.create_parameter([out_features], is_bias=True) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return ops.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]} -> {self.weight.shape[1]}, bias={self.bias is not None}"


class Dropout(Layer):
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
        if not self.training or self.rate == 0.0:
            return x
        context = randomness.current_context()
        if context is None or not place.on_cpu(x):
            self.seed_paddle()
            return F.dropout(x, self.rate)
        return ops.dropped(x, self.draw(math.prod(x.shape))(0, math.prod(x.shape)), self.factor)

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

    def seed_paddle(self) -> None:
        """Within a training run, have Paddle's generator draw by the key of this layer and step."""
        context = randomness.current_context()
        if context is not None:
            key = (context.seed, "dropout", self.path, context.step, context.micro_batch)
            paddle.seed(randomness.digest(*key) >> 1)

    def extra_repr(self) -> str:
        return f"{self.rate}"


class Embedding(Layer):
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
