"""A single row in NumPy: what a step of a search over one sentence is made of.

There a call of Paddle takes longer than its arithmetic. Where all components of a stack compute arrays
(`Component.computes_arrays`), what travels between its layers is one, float32 [1, 1, C], and weights are read where
they lie. From two rows on Paddle's products are the faster ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import paddle_compat
from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import Component


def all_compute_arrays(components: Iterable[Component]) -> bool:
    """Whether each one's own class says so, and nobody asked to be called before or after it. A subclass that says
    nothing may compute what only tensors can."""
    return all(
        "computes_arrays" in vars(type(each)) and paddle_compat.kept(each) is not None and each.computes_arrays()
        for each in components
    )


def idle(*dropouts: Dropout) -> bool:
    """Whether none of these drops anything, and nobody asked to be called before or after it."""
    return all(not (each.training and each.rate) and paddle_compat.kept(each) is not None for each in dropouts)


def usable(*layers: paddle_compat.Layer) -> bool:
    """Whether these may be computed from their `parameters`: they are float32 on the CPU, and nobody asked to be called
    before or after one of the layers."""
    tensors = [each for layer in layers for each in layer.parameters(include_sublayers=False)]
    plain = all(each.place.is_cpu_place() and each.dtype == paddle.float32 for each in tensors)
    return plain and all(paddle_compat.kept(layer) is not None for layer in layers)


def parameters(layer: paddle_compat.Layer) -> Sequence[Any]:
    """`weight` and `bias` (None: there is none) of a layer as arrays, where they lie; looked up once in a search, in
    which they stay as they are."""
    kept = paddle_compat.kept(layer)
    if kept is None:
        return _arrays(layer)
    try:  # a token asks forty times
        return kept["arrays"]
    except KeyError:
        kept["arrays"] = arrays = _arrays(layer)
        return arrays


def _arrays(layer: paddle_compat.Layer) -> list[np.ndarray | None]:
    tensors = layer.weight, getattr(layer, "bias", None)
    return [None if each is None else np.from_dlpack(each.detach()) for each in tensors]


def affine(linear: Linear, x: np.ndarray) -> np.ndarray:
    """x W + b of one row x [I], of any shape → [O]."""
    weight, bias = parameters(linear)
    y = np.dot(x.reshape(-1), weight)
    if bias is not None:
        y += bias
    return y


def tensor(x: np.ndarray) -> Tensor:
    """A copy of x float32 as a tensor on the CPU, in a third of the time of `paddle.to_tensor`."""
    y = paddle_compat.empty(x.shape)
    y.get_tensor().set(x, paddle_compat.CPU)
    return y
