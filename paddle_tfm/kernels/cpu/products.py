"""Matrix products of a model, in float32 by MKL or in bfloat16 by oneDNN, with a backward of their own.

    y = x W + b        x̄ = ȳ Wᵀ        W̄ = xᵀ ȳ        b̄ = Σ over rows of ȳ

In bfloat16 each factor of a product is rounded to it, and nothing else is: sums, outputs, gradients, biases and the
parameters themselves are float32.

Source: training with bfloat16 factors and float32 sums: Kalamkar et al. 2019, arXiv:1905.12322.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_tfm import blas, paddle_compat, place
from paddle_tfm.kernels import function
from paddle_tfm.kernels.cpu import library, row_kernels
from paddle_tfm.kernels.cpu.gemm import gemm, multiply, rounded
from paddle_tfm.kernels.cpu.primitives import address
from paddle_tfm.language import _

Kind = Literal["float32", "bfloat16"]
KINDS: tuple[Kind, ...] = ("float32", "bfloat16")
Factor = Tensor | np.ndarray
ROUNDED = "rounded last"  # of a `Call.cache`: (an x, its version, it in bfloat16)


def why_not(kind: Kind) -> str | None:
    """None if products of `kind` are computed with oneDNN where this process trains, otherwise the reason."""
    if not place.on_cpu():
        return _("a GPU multiplies in train.precision")
    reason = library.why_not(kind)
    if reason is None and not library.library().has_avx512:
        return _("this processor has no AVX-512, without which they were not measured")
    if reason is None and blas.path_in_use() == "default":
        return _("on the default path of Paddle's BLAS, last bits depend on where in memory a factor lies")
    return reason


def available(kind: Kind) -> Kind | None:
    """What computes products of `kind` here: "bfloat16" by oneDNN, "float32" by MKL, or None: Paddle's own layers, in
    float32, where the processor has no AVX-512. Where bfloat16 is not to be had it is float32.
    """
    if not why_not(kind):
        return kind
    return None if why_not("float32") else "float32"


def description(kind: Kind) -> str:
    """Who computes products of `kind`, and in which, for a run's identity: their last bits depend on it."""
    here = available(kind)
    if here == "bfloat16":
        return f"bfloat16 by oneDNN {'.'.join(map(str, library.library().version))}"
    return "float32 by Paddle" if here is None else "float32 by MKL"


def is_plain(x: Tensor) -> bool:
    """Whether a product takes x: float32 on the CPU, dense, and not empty."""
    return x.dtype == paddle.float32 and place.on_cpu(x) and x.is_contiguous() and 0 not in x.shape


class Linear(function.Function):
    """Holds the factors until the graph is gone: float32 tensors as they are, as Paddle's product does, or arrays of
    half the size in bfloat16, of which those of one x are shared by the products on it."""

    once = False

    def __init__(self, transpose: bool, kind: Kind, cache: dict[Any, Any]):
        self.transpose, self.kind, self.cache = transpose, kind, cache

    def forward(self, *inputs: Tensor) -> Tensor:
        x, weight, *rest = inputs
        inner, width = weight.shape[::-1] if self.transpose else weight.shape
        y = paddle_compat.empty([*x.shape[:-1], width])
        self.shape = x.shape
        self.factors = (self._rounded_once(x), rounded(_array(weight))) if self.kind == "bfloat16" else (x, weight)
        self.versions = self._versions()
        left, right = (factor if isinstance(factor, np.ndarray) else _array(factor) for factor in self.factors)
        bias, out = _array(rest[0]) if rest else None, _array(y).reshape(-1, width)
        gemm(left.reshape(-1, inner), right, out, transpose_b=self.transpose, bias=bias)
        return y

    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        """x̄, W̄ and b̄, each None where its tensor needs none."""
        (x, weight), gradient = self._unchanged(), gradient.contiguous()
        width, inner = gradient.shape[-1], self.shape[-1]
        rows = math.prod(gradient.shape[:-1])
        up = rounded(_array(gradient)) if self.kind == "bfloat16" else gradient
        of_x = of_weight = of_bias = None
        if self.wanted[0]:
            of_x, at = paddle_compat.empty(self.shape), (address(up), address(weight))
            multiply(self.kind, rows, inner, width, *at, address(of_x), False, not self.transpose)
        if self.wanted[1]:
            left, right = (up, x) if self.transpose else (x, up)
            m, n = (width, inner) if self.transpose else (inner, width)
            of_weight = paddle_compat.empty([m, n])
            multiply(self.kind, m, n, rows, address(left), address(right), address(of_weight), True, False)
        if len(self.wanted) > 2 and self.wanted[2]:
            of_bias, ones = paddle_compat.empty([width]), np.ones(rows, np.float32)
            multiply("float32", 1, width, rows, address(ones), address(gradient), address(of_bias), False, False)
        return [of_x, of_weight, of_bias][: len(self.wanted)]

    def differentiable_backward(self, gradient: Tensor) -> list[Tensor | None]:
        """By Paddle's products, of tensors that themselves have gradients."""
        if self.kind == "bfloat16":
            raise RuntimeError(
                "a product in bfloat16 has no second derivative, since it keeps rounded factors only; set "
                "train.products: float32"
            )
        x, weight = self._unchanged()
        up, rows = gradient.reshape([-1, gradient.shape[-1]]), x.reshape([-1, self.shape[-1]])
        left, right = (up, rows) if self.transpose else (rows, up)
        gradients = [
            paddle.matmul(gradient, weight, transpose_y=not self.transpose),
            paddle.matmul(left, right, transpose_x=True),
            up.sum(0),
        ]
        return [one if wanted else None for one, wanted in zip(gradients, self.wanted)]

    def _unchanged(self) -> tuple[Any, Any]:
        """The factors, as they were multiplied."""
        if self._versions() != self.versions:
            raise RuntimeError(
                "a factor of a matrix product must stay as it is until the gradient is taken, but was changed in "
                "place; change a copy"
            )
        return self.factors

    def _rounded_once(self, x: Tensor) -> np.ndarray:
        """x in bfloat16; the same array for products that follow one another on one x, such as those of q, k and v."""
        last = self.cache.get(ROUNDED)
        if last is not None and last[0]() is x and last[1] == x.inplace_version:
            return last[2]
        result = rounded(_array(x))
        self.cache[ROUNDED] = weakref.ref(x), x.inplace_version, result
        return result

    def _versions(self) -> list[int]:
        return [factor.inplace_version for factor in self.factors if isinstance(factor, Tensor)]


def _array(x: Tensor) -> np.ndarray:
    """The numbers of x where they lie."""
    return np.from_dlpack(x.detach())


# ------------------------------------------------------------ what functions are made of that hold several products


def usable(x: Tensor, layers: Sequence[nn.Layer]) -> bool:
    """Whether `Linear` layers of x may be parts of one function: x is float32 on the CPU, and all have a bias or none
    has."""
    return row_kernels.usable(x) and len({layer.bias is None for layer in layers}) == 1


def parameters(layers: Sequence[nn.Layer]) -> list[Tensor]:
    """The weights of `layers`, then their biases, if they have any."""
    return [layer.weight for layer in layers] + [layer.bias for layer in layers if layer.bias is not None]


def rows(x: Tensor) -> np.ndarray:
    """x [..., C] as rows [N, C], where it lies if it is dense."""
    array = np.from_dlpack(x.detach().contiguous())
    return array.reshape(-1, array.shape[-1])


def factor(x: np.ndarray, kind: Kind) -> np.ndarray:
    """float32 x as a factor of products of `kind`: as it is, or in bfloat16, for which it must be dense."""
    return rounded(x) if kind == "bfloat16" else x


def of_weight(x: np.ndarray, gradient: np.ndarray, scale: float = 1.0) -> Tensor:
    """The gradient of the weight [I, O]: scale xᵀ ȳ, of factors."""
    result = paddle_compat.empty([x.shape[1], gradient.shape[1]])
    gemm(x, gradient, np.from_dlpack(result), transpose_a=True, scale=scale)
    return result


def of_bias(gradient: np.ndarray, scale: float = 1.0) -> Tensor:
    """The gradient of the bias [O]; `gradient` is float32."""
    result = paddle_compat.empty([gradient.shape[1]])
    ones = np.ones((1, len(gradient)), np.float32)
    gemm(ones, gradient, np.from_dlpack(result)[None], scale=scale)
    return result
