"""Matrix products of a model by oneDNN, in float32 or in bfloat16, with a backward of their own.

    y = x W + b        x̄ = ȳ Wᵀ        W̄ = xᵀ ȳ        b̄ = Σ over rows of ȳ

In bfloat16 each factor of a product is rounded to it, and nothing else is: sums, outputs, gradients, biases and the
parameters themselves are float32. Only within `using`, which a training step enters; elsewhere, and for tensors that
oneDNN does not take (float64, a GPU's), `linear` returns None, and its caller multiplies with Paddle.

Source: training with bfloat16 factors and float32 sums: Kalamkar et al. 2019, arXiv:1905.12322.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import numpy as np
import paddle
from paddle import Tensor
from paddle.autograd import PyLayer

from paddle_tfm.onednn.gemm import multiply, rounded
from paddle_tfm.onednn.library import why_not
from paddle_tfm.onednn.primitives import address

Kind = Literal["float32", "bfloat16"]
_kind: Kind | None = None  # None: Paddle's own products
_rounded_last: tuple[weakref.ref, int, np.ndarray] | None = None


def available(kind: Kind) -> Kind | None:
    """The kind of oneDNN's products that takes the place of `kind` here; None: Paddle's own, in float32."""
    if not why_not(kind):
        return kind
    return None if why_not("float32") else "float32"


@contextmanager
def using(kind: Kind | None) -> Iterator[None]:
    """Within this block `linear` computes products of `kind`; None: none."""
    global _kind, _rounded_last
    before, _kind = _kind, kind
    try:
        yield
    finally:
        _kind, _rounded_last = before, None


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, transpose: bool = False) -> Tensor | None:
    """x [..., I] · weight [I, O] + bias [O] → [..., O]; with `transpose` the weight is [O, I]. None where oneDNN is not
    in use, or does not take these tensors."""
    tensors = (x, weight) if bias is None else (x, weight, bias)
    if _kind is None or not all(_is_plain(tensor) for tensor in tensors):
        return None
    if not paddle.is_grad_enabled() or all(tensor.stop_gradient for tensor in tensors):
        return _forward(x, weight, bias, transpose, _kind)[0]
    return _Linear.apply([_anchor(), *tensors], transpose, _kind)


def _is_plain(x: Tensor) -> bool:
    return x.dtype == paddle.float32 and x.place.is_cpu_place() and x.is_contiguous()


@functools.cache
def _anchor() -> Tensor:
    """A leaf that is the first input of every product and gets no gradient.

    Paddle 3.3 asks for a gradient of each input of a PyLayer, or of none, by what its *first* one needs, if all come in
    one list; and tells no PyLayer which of them `paddle.grad` wants. With this one in front, gradients of the others may
    be returned whether they are wanted or not, as Paddle's own kernels do.
    """
    anchor = paddle.zeros([1])
    anchor.stop_gradient = False
    return anchor


class _Linear(PyLayer):
    @staticmethod
    def forward(ctx, tensors: Sequence[Tensor], transpose: bool, kind: Kind) -> Tensor:
        _, x, weight, *rest = tensors
        bias = rest[0] if rest else None
        y, factors = _forward(x, weight, bias, transpose, kind)
        ctx.wanted = [not tensor.stop_gradient for tensor in tensors[1:]]
        ctx.shape, ctx.transpose, ctx.kind, ctx.factors = x.shape, transpose, kind, factors
        ctx.tensors = tensors[1:] if kind == "float32" else ()
        ctx.versions = [tensor.inplace_version for tensor in ctx.tensors]
        return y

    @staticmethod
    def backward(ctx, gradient: Tensor) -> list[Tensor | None]:
        if [tensor.inplace_version for tensor in ctx.tensors] != ctx.versions:
            raise RuntimeError(
                "a factor of a matrix product must stay as it is until the gradient is taken, but was changed in place; "
                "change a copy"
            )
        if paddle.is_grad_enabled():  # create_graph: a gradient that itself has one
            return [None, *_differentiable(ctx, gradient)]
        return [None, *_backward(ctx, gradient if gradient.is_contiguous() else gradient.contiguous())]


def _forward(
    x: Tensor, weight: Tensor, bias: Tensor | None, transpose: bool, kind: Kind
) -> tuple[Tensor, tuple[np.ndarray, np.ndarray] | None]:
    """The product, and in bfloat16 its rounded factors."""
    inner, width = weight.shape[::-1] if transpose else weight.shape
    if x.shape[-1] != inner:
        raise ValueError(f"x {x.shape} must end in the {inner} rows of a weight, but ends in {x.shape[-1]}")
    y = paddle.empty([*x.shape[:-1], width])
    rows = x.size // inner if inner else 0
    if bias is not None:
        np.copyto(_array(y), _array(bias))
    factors = (_rounded_once(x), rounded(_array(weight))) if kind == "bfloat16" else None
    addresses = map(address, factors or (x, weight))
    multiply(kind, rows, width, inner, *addresses, address(y), False, transpose, add=bias is not None)
    return y, factors


def _backward(ctx, gradient: Tensor) -> list[Tensor | None]:
    """x̄, W̄ and b̄, each None where its tensor needs none."""
    width, inner = gradient.shape[-1], ctx.shape[-1]
    rows = gradient.size // width
    if ctx.kind == "bfloat16":
        up, factors = rounded(_array(gradient)), ctx.factors
    else:
        up, factors = gradient, ctx.tensors
    up_at, x_at, weight_at = address(up), address(factors[0]), address(factors[1])
    gradients: list[Tensor | None] = [None] * len(ctx.wanted)
    if ctx.wanted[0]:
        gradients[0] = paddle.empty(ctx.shape)
        at = address(gradients[0])
        multiply(ctx.kind, rows, inner, width, up_at, weight_at, at, False, not ctx.transpose)
    if ctx.wanted[1]:
        shape = [width, inner] if ctx.transpose else [inner, width]
        gradients[1] = paddle.empty(shape)
        pair = (up_at, x_at) if ctx.transpose else (x_at, up_at)
        multiply(ctx.kind, *shape, rows, *pair, address(gradients[1]), True, False)
    if len(ctx.wanted) > 2 and ctx.wanted[2]:
        gradients[2] = paddle.empty([width])
        ones = np.ones(rows, np.float32)
        multiply("float32", 1, width, rows, address(ones), address(gradient), address(gradients[2]), False, False)
    return gradients


def _differentiable(ctx, gradient: Tensor) -> list[Tensor | None]:
    """The same by Paddle's products, of tensors that themselves have gradients."""
    if ctx.kind == "bfloat16":
        raise RuntimeError(
            "a product in bfloat16 has no second derivative, since it keeps rounded factors only; set "
            "train.products: float32"
        )
    x, weight = ctx.tensors[:2]
    up, rows = gradient.reshape([-1, gradient.shape[-1]]), x.reshape([-1, ctx.shape[-1]])
    of_weight = (up, rows) if ctx.transpose else (rows, up)
    gradients = [
        paddle.matmul(gradient, weight, transpose_y=not ctx.transpose),
        paddle.matmul(*of_weight, transpose_x=True),
        up.sum(0),
    ]
    return [one if wanted else None for one, wanted in zip(gradients, ctx.wanted)]


def _array(x: Tensor) -> np.ndarray:
    """The numbers of x where they lie."""
    return np.from_dlpack(x.detach())


def _rounded_once(x: Tensor) -> np.ndarray:
    """x in bfloat16; the same array for products that follow one another on one x, such as those of q, k and v."""
    global _rounded_last
    if _rounded_last is not None and _rounded_last[0]() is x and _rounded_last[1] == x.inplace_version:
        return _rounded_last[2]
    result = rounded(_array(x))
    _rounded_last = weakref.ref(x), x.inplace_version, result
    return result
