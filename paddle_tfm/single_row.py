"""A single row in NumPy: what a step of a search over one sentence is made of.

There a call of Paddle takes longer than its arithmetic. Where all components of a stack compute arrays
(`Component.computes_arrays`), what travels between its layers is one, float32 [1, 1, C], and weights are read where
they lie. From two rows on Paddle's products are the faster ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import paddle_compat, place
from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import Attention, FeedForward, Norm, Placement

ROLES = (Attention, FeedForward, Norm, Placement)  # what an array passes on its way


def computes(stack: paddle_compat.Layer, x: Tensor) -> bool:
    """Whether x may travel through all layers below `stack` as an array: it is float32 on the CPU, their components say
    so, nothing is dropped, and nobody asked to be called before or after a layer. A subclass that says nothing of
    arrays may compute what only tensors can: a component's own class must say so."""
    if x.dtype != paddle.float32 or not place.on_cpu(x):
        return False
    layers = stack.sublayers()
    if any(paddle_compat.kept(each) is None for each in layers):
        return False
    for each in layers:
        if isinstance(each, Dropout) and each.training and each.rate > 0.0:
            return False
        if isinstance(each, ROLES) and not ("computes_arrays" in vars(type(each)) and each.computes_arrays()):
            return False
    return True


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


def array(x: Tensor) -> Any:
    """A copy of x as an array, for those who take tensors too."""
    return x.numpy()


def tensor(x: Any) -> Tensor:
    """A copy of x as a tensor float32 on the CPU, in a third of the time of `paddle.to_tensor`."""
    y = paddle_compat.empty(x.shape)
    y.get_tensor().set(np.asarray(x, np.float32), paddle_compat.CPU)
    return y
