"""Affine maps over rows of NumPy arrays: what functions are made of that hold several products of a training step.

    y = scale (x W + b)        x̄ = scale ȳ Wᵀ        W̄ = scale xᵀ ȳ        b̄ = scale Σ over rows of ȳ

Rows may lie apart, so that several maps of one x write side by side into one array. x, W and ȳ are as `factor` makes
them, float32, or bfloat16, rounded once for all products that they are in. All else is float32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from paddle import Tensor, nn

from paddle_tfm import paddle_compat
from paddle_tfm.kernels.cpu import products, row_kernels
from paddle_tfm.kernels.cpu.gemm import gemm, rounded


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


def factor(x: np.ndarray, kind: products.Kind) -> np.ndarray:
    """float32 x as a factor of products of `kind`: as it is, or in bfloat16, for which it must be dense."""
    return rounded(x) if kind == "bfloat16" else x


def forward(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, out: np.ndarray, scale: float = 1.0
) -> np.ndarray:
    """out [N, O] = scale (x [N, I] weight [I, O] + bias [O])."""
    return gemm(x, weight, out, scale=scale, bias=bias)


def of_input(
    gradient: np.ndarray, weight: np.ndarray, out: np.ndarray, scale: float = 1.0, add: bool = False
) -> np.ndarray:
    """out [N, I] = the gradient of x, or with `add` that much more of it."""
    return gemm(gradient, weight, out, transpose_b=True, scale=scale, add=add)


def of_weight(x: np.ndarray, gradient: np.ndarray, scale: float = 1.0) -> Tensor:
    """The gradient of the weight [I, O]."""
    result = paddle_compat.empty([x.shape[1], gradient.shape[1]])
    gemm(x, gradient, np.from_dlpack(result), transpose_a=True, scale=scale)
    return result


def of_bias(gradient: np.ndarray, scale: float = 1.0) -> Tensor:
    """The gradient of the bias [O]; `gradient` is float32."""
    result = paddle_compat.empty([gradient.shape[1]])
    ones = np.ones((1, len(gradient)), np.float32)
    gemm(ones, gradient, np.from_dlpack(result)[None], scale=scale)
    return result
