"""Rotation of pairs of channels as complex numbers, for rotary encodings."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.language import _
from paddle_tfm.validators import positive


def frequencies(head_dim: int, base: float) -> Tensor:
    """base^(−2i / D) of each pair, float64 [D / 2].

    Raises:
        ValueError: `head_dim` is odd, or `base` is not positive.
    """
    if head_dim % 2 != 0:
        raise ValueError(_("`head_dim` must be even, but is {head_dim}").format(head_dim=head_dim))
    positive(base=base)
    return paddle.to_tensor(float(base) ** (-np.arange(0, head_dim, 2) / head_dim))


def rotate(x: Tensor, angle: Tensor, length: Tensor | None = None) -> Tensor:
    """Each pair of neighbours of x [B, H, T, D], as a complex number, times length · e^(i angle): float64 [B|1, 1, T,
    D/2] each, `length` being 1 where it is None. On a CPU that is one product, a third of the time of four real
    ones."""
    dtype = x.dtype if x.dtype == paddle.float64 else paddle.float32
    real, imaginary = paddle.cos(angle), paddle.sin(angle)
    if length is not None:
        real, imaginary = real * length, imaginary * length
    turn = paddle.complex(real.astype(dtype), imaginary.astype(dtype))
    pairs = x.reshape([*x.shape[:-1], -1, 2])  # [B, H, T, D] -> [B, H, T, D/2, 2]
    product = paddle.as_real(paddle.as_complex(pairs.astype(dtype)) * turn)
    return product.reshape(x.shape).astype(x.dtype)  # [B, H, T, D/2, 2] -> [B, H, T, D]
