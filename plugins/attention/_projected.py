"""Multi-head attention of a training step as one function, its four projections in it.

The heads are columns of what the projections write, and products of heads read them there: no transpose, and what is
held is q, k, v and the heads' outputs, once.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from paddle import Tensor

from paddle_tfm import fused, paddle_compat
from paddle_tfm.layers import Linear
from paddle_tfm.onednn import affine, products
from paddle_tfm.protocols import KeyValue, Mask, Tap, TokenInfo
from paddle_tfm_plugins.attention._attend import Weights

if TYPE_CHECKING:
    from paddle_tfm_plugins.attention.multihead import MultiHead


class Unprojected(KeyValue):
    """The source [B, S, C], whose keys and values are computed when somebody asks for them, or within `attend`."""

    def __init__(self, attention: MultiHead, source: Tensor, info: TokenInfo):
        self.__dict__.update(attention=attention, source=source, info=info)

    @cached_property
    def _projected(self) -> KeyValue:
        return self.__dict__["attention"].keys_and_values(self.__dict__["source"], self.__dict__["info"])

    @property
    def key(self) -> Tensor:
        return self._projected.key

    @property
    def value(self) -> Tensor:
        return self._projected.value


def projects_later(attention: MultiHead, source: Tensor, info: TokenInfo) -> bool:
    """Whether `attend` may project: a step whose products are oneDNN's, and nothing between projections and scores."""
    layers = attention.projections()
    if any(type(layer) is not Linear for layer in layers) or attention.inner_norm is not None:
        return False
    return affine.usable(source, layers) and not info.encoding.uses() & {"rotate", "scores", "values"}


def attend(attention: MultiHead, x: Tensor, kv: KeyValue, mask: Mask, tap: Tap) -> Tensor | None:
    """The output [B, T, C] of `attention`; None where it is not computed in one function."""
    if type(kv) is not Unprojected or tap.recording or not mask.dense("float32").stop_gradient:
        return None
    source, heads = kv.__dict__["source"], attention.num_heads
    if not affine.usable(x, attention.projections()):
        return None
    draw, dropout = None, attention.dropout
    if dropout.training and dropout.rate > 0.0:
        draw = dropout.draw(x.shape[0] * heads * x.shape[1] * source.shape[1])
    activations = [x] if source is x else [x, source]
    weights = Weights(mask.dense("float32"), draw, dropout.factor)
    function = _Attend(weights, heads, len(activations))
    return fused.apply(function, *activations, *affine.parameters(attention.projections()))


class _Attend(fused.Function):
    """x [B, T, C] (and the source [B, S, C]), the four weights and their biases → [B, T, C]."""

    def __init__(self, weights: Weights, heads: int, number: int):
        self.weights, self.heads, self.number = weights, heads, number
        self.kind = products.in_use()

    def forward(self, *inputs: Tensor) -> Tensor:
        x, source = inputs[0], inputs[self.number - 1]
        self.shapes = x.shape, source.shape
        self.x = self._factor(affine.rows(x))
        self.source = self.x if self.number == 1 else self._factor(affine.rows(source))
        arrays = [np.from_dlpack(each.detach()) for each in inputs[self.number :]]
        self.matrices, biases = [self._factor(each) for each in arrays[:4]], arrays[4:] or [None] * 4
        self.scale = (self.matrices[0].shape[1] // self.heads) ** -0.5
        q, k, v = self._columns(self._side_by_side())
        affine.forward(self.x, self.matrices[0], biases[0], q, self.scale)
        affine.forward(self.source, self.matrices[1], biases[1], k)
        affine.forward(self.source, self.matrices[2], biases[2], v)
        context = np.empty((len(self.x), v.shape[1]), np.float32)
        self.weights.gather(*map(self._by_head, (q, k, v, context)))
        self.context = self._factor(context)
        y = paddle_compat.empty([*x.shape[:2], self.matrices[3].shape[1]])
        affine.forward(self.context, self.matrices[3], biases[3], affine.rows(y))
        return y

    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        arrays, scale = self._side_by_side(), self.scale
        of_q, of_k, of_v = self._columns(arrays)
        of_y = affine.rows(gradient)
        up = self._factor(of_y)
        of_context = affine.of_input(up, self.matrices[3], np.empty(self.context.shape, np.float32))
        self.weights.gradients(*map(self._by_head, (of_context, of_q, of_k, of_v)))
        q, k, v = self._columns([self._factor(each) for each in arrays])
        of_inputs = [paddle_compat.empty(shape) for shape in self.shapes[: self.number]]
        of_x, of_source = affine.rows(of_inputs[0]), affine.rows(of_inputs[-1])
        affine.of_input(q, self.matrices[0], of_x, scale)
        affine.of_input(k, self.matrices[1], of_source, add=self.number == 1)
        affine.of_input(v, self.matrices[2], of_source, add=True)
        pairs = (self.x, q, scale), (self.source, k, 1.0), (self.source, v, 1.0), (self.context, up, 1.0)
        of_weights = [affine.of_weight(*each) for each in pairs]
        if len(self.wanted) == self.number + 4:
            return [*of_inputs, *of_weights]
        of_biases = [affine.of_bias(of_q, scale), *map(affine.of_bias, (of_k, of_v, of_y))]
        return [*of_inputs, *of_weights, *of_biases]

    def _factor(self, x: np.ndarray) -> np.ndarray:
        return affine.factor(x, self.kind)

    def _side_by_side(self) -> list[np.ndarray]:
        """New arrays for q, k and v, those of one source in one: [B · Tq, 3 H · D], or [B · Tq, H · D] and
        [B · Tk, 2 H · D]."""
        width = self.matrices[0].shape[1]
        sizes = [(len(self.x), 3)] if self.number == 1 else [(len(self.x), 1), (len(self.source), 2)]
        return [np.empty((rows, number * width), np.float32) for rows, number in sizes]

    def _columns(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """q [B · Tq, H · D], k and v [B · Tk, H · D] where they lie."""
        width = self.matrices[0].shape[1]
        return [part for each in arrays for part in np.split(each, each.shape[1] // width, 1)]

    def _by_head(self, columns: np.ndarray) -> np.ndarray:
        """[B · T, H · D] as [B, H, T, D], where it lies."""
        return columns.reshape(self.shapes[0][0], -1, self.heads, columns.shape[1] // self.heads).transpose(0, 2, 1, 3)
