"""Matrix products of a model by oneDNN, in float32 or in bfloat16, with a backward of their own.

    y = x W + b        x̄ = ȳ Wᵀ        W̄ = xᵀ ȳ        b̄ = Σ over rows of ȳ

In bfloat16 each factor of a product is rounded to it, and nothing else is: sums, outputs, gradients, biases and the
parameters themselves are float32. Only within `using`, which a training step enters; elsewhere, and for tensors that
oneDNN does not take (float64, a GPU's), `linear` returns None, and its caller multiplies with Paddle.

Source: training with bfloat16 factors and float32 sums: Kalamkar et al. 2019, arXiv:1905.12322.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import paddle
from paddle import Tensor
from paddle.autograd import PyLayer

from paddle_tfm import paddle_compat
from paddle_tfm.onednn import library
from paddle_tfm.onednn.gemm import multiply, rounded
from paddle_tfm.onednn.primitives import address

Kind = Literal["float32", "bfloat16"]
KINDS: tuple[Kind, ...] = ("float32", "bfloat16")
Factor = Tensor | np.ndarray
_kind: Kind | None = None  # None: Paddle's own products
_rounded_last: tuple[weakref.ref, int, np.ndarray] | None = None


def why_not(kind: Kind) -> str | None:
    """None if products of `kind` are computed with oneDNN where this process trains, otherwise the reason."""
    if paddle.device.get_device() != "cpu":
        return "a GPU multiplies in train.precision"
    reason = library.why_not(kind)
    if reason is None and not library.library().has_avx512:
        return "this processor has no AVX-512, without which they were not measured"
    return reason


def available(kind: Kind) -> Kind | None:
    """What computes products of `kind` here: "bfloat16" or "float32" by oneDNN, or None: Paddle's own, in float32.

    Where bfloat16 is not to be had it is float32; and that is oneDNN's where the processor has AVX-512, for there its
    products are as fast as any that were measured (docs/performance.md), or faster.
    """
    if not why_not(kind):
        return kind
    return None if why_not("float32") else "float32"


def description(kind: Kind) -> str:
    """Who computes products of `kind`, and in which, for a run's identity: their last bits depend on it."""
    here = available(kind)
    return "float32 by Paddle" if here is None else f"{here} by oneDNN {'.'.join(map(str, library.library().version))}"


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
    inner, width = weight.shape[::-1] if transpose else weight.shape
    if x.shape[-1] != inner or (bias is not None and bias.shape != [width]):
        return None  # Paddle does what can be done, or says what is wrong
    if not paddle.is_grad_enabled() or all(tensor.stop_gradient for tensor in tensors):
        return _forward(x, weight, bias, transpose, _kind)[0]
    return _Linear.apply([paddle_compat.anchor(), *tensors], transpose, _kind)


def _is_plain(x: Tensor) -> bool:
    return x.dtype == paddle.float32 and x.place.is_cpu_place() and x.is_contiguous() and 0 not in x.shape


class _Linear(PyLayer):
    """Holds the factors until the gradient is taken: float32 tensors as they are, as Paddle's product does, or arrays
    of half the size in bfloat16, of which those of one x are shared by the products on it."""

    @staticmethod
    def forward(ctx, tensors: Sequence[Tensor], transpose: bool, kind: Kind) -> Tensor:
        _, x, weight, *rest = tensors
        y, factors = _forward(x, weight, rest[0] if rest else None, transpose, kind)
        ctx.wanted = [not tensor.stop_gradient for tensor in tensors[1:]]
        ctx.shape, ctx.transpose, ctx.kind, ctx.factors = x.shape, transpose, kind, factors
        ctx.versions = _versions(factors)
        return y

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> list[Tensor]:
        if _versions(ctx.factors) != ctx.versions:
            raise RuntimeError(
                "a factor of a matrix product must stay as it is until the gradient is taken, but was changed in "
                "place; change a copy"
            )
        (gradient,) = gradients
        # With create_graph, the gradient must itself have one.
        backward = _differentiable_backward if paddle.is_grad_enabled() else _backward
        of_anchor: Any = None
        return [of_anchor, *backward(ctx, gradient.contiguous())]


def _versions(factors: Sequence[Factor]) -> list[int]:
    return [factor.inplace_version for factor in factors if isinstance(factor, Tensor)]


def _forward(
    x: Tensor, weight: Tensor, bias: Tensor | None, transpose: bool, kind: Kind
) -> tuple[Tensor, tuple[Factor, Factor]]:
    """The product, and its factors as they were multiplied."""
    inner, width = weight.shape[::-1] if transpose else weight.shape
    y = paddle_compat.empty([*x.shape[:-1], width])
    if bias is not None:
        np.copyto(_array(y), _array(bias))
    factors = (_rounded_once(x), rounded(_array(weight))) if kind == "bfloat16" else (x, weight)
    at = [address(factor) for factor in factors]
    multiply(kind, math.prod(x.shape[:-1]), width, inner, at[0], at[1], address(y), False, transpose, bias is not None)
    return y, factors


def _backward(ctx, gradient: Tensor) -> list[Tensor | None]:
    """x̄, W̄ and b̄, each None where its tensor needs none."""
    width, inner = gradient.shape[-1], ctx.shape[-1]
    rows = math.prod(gradient.shape[:-1])
    x, weight = ctx.factors
    up = rounded(_array(gradient)) if ctx.kind == "bfloat16" else gradient
    of_x = of_weight = of_bias = None
    if ctx.wanted[0]:
        of_x = paddle_compat.empty(ctx.shape)
        multiply(ctx.kind, rows, inner, width, address(up), address(weight), address(of_x), False, not ctx.transpose)
    if ctx.wanted[1]:
        left, right = (up, x) if ctx.transpose else (x, up)
        m, n = (width, inner) if ctx.transpose else (inner, width)
        of_weight = paddle_compat.empty([m, n])
        multiply(ctx.kind, m, n, rows, address(left), address(right), address(of_weight), True, False)
    if len(ctx.wanted) > 2 and ctx.wanted[2]:
        of_bias, ones = paddle_compat.empty([width]), np.ones(rows, np.float32)
        multiply("float32", 1, width, rows, address(ones), address(gradient), address(of_bias), False, False)
    return [of_x, of_weight, of_bias][: len(ctx.wanted)]


def _differentiable_backward(ctx, gradient: Tensor) -> list[Tensor | None]:
    """The same by Paddle's products, of tensors that themselves have gradients."""
    if ctx.kind == "bfloat16":
        raise RuntimeError(
            "a product in bfloat16 has no second derivative, since it keeps rounded factors only; set "
            "train.products: float32"
        )
    x, weight = ctx.factors
    up, rows = gradient.reshape([-1, gradient.shape[-1]]), x.reshape([-1, ctx.shape[-1]])
    left, right = (up, rows) if ctx.transpose else (rows, up)
    gradients = [
        paddle.matmul(gradient, weight, transpose_y=not ctx.transpose),
        paddle.matmul(left, right, transpose_x=True),
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
