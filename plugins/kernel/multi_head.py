"""Multi-head attention of a training step as one function, its four projections in it.

The heads are columns of what the projections write, and products of heads read them there: no transpose, and what is
held is q, k, v and the heads' outputs, once.
"""

from __future__ import annotations

import numpy as np
from paddle import Tensor

from paddle_tfm import paddle_compat
from paddle_tfm.kernels import Call, function
from paddle_tfm.kernels.cpu import products
from paddle_tfm.kernels.cpu.gemm import gemm
from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import Kernel
from paddle_tfm_plugins.attention.multihead import MultiHead
from paddle_tfm_plugins.kernel._attend import Weights


class MultiHeadAsOne(Kernel):
    """Projections, scores, softmax, dropout, sum and output projection as one function, where nothing stands between
    projections and scores: no rotation, no term of the encoding but a bias that is not learned, no inner norm."""

    of = MultiHead
    device = "cpu"

    def fits(self, call: Call) -> bool:
        attention, (x, source, source_info, _, mask, tap) = call.layer, call.args
        layers = attention.query, attention.key, attention.value, attention.output
        if call.mode.products is None or tap.recording or attention.inner_norm is not None:
            return False
        if source_info.encoding.uses() & {"rotate", "scores", "values"} or not call.plain(Linear, *layers):
            return False
        if not call.plain(Dropout, attention.dropout):
            return False
        if 0 in (*x.shape, *source.shape) or not (products.usable(x, layers) and products.usable(source, layers)):
            return False
        return mask.dense("float32").stop_gradient

    def run(self, call: Call) -> Tensor:
        attention, (x, source, _, _, mask, _) = call.layer, call.args
        layers = attention.query, attention.key, attention.value, attention.output
        heads, dropout = attention.num_heads, attention.dropout
        draw = call.draw(dropout, x.shape[0] * heads * x.shape[1] * source.shape[1])
        activations = [x] if source is x else [x, source]
        weights = Weights(mask.dense("float32"), draw, dropout.factor)
        whole = _Attend(weights, heads, len(activations), call.mode.products)
        return function.apply(whole, *activations, *products.parameters(layers))


class _Attend(function.Function):
    """x [B, T, C] (and the source [B, S, C]), the four weights and their biases → [B, T, C]."""

    def __init__(self, weights: Weights, heads: int, number: int, kind: products.Kind):
        self.weights, self.heads, self.number, self.kind = weights, heads, number, kind

    def forward(self, *inputs: Tensor) -> Tensor:
        x, source = inputs[0], inputs[self.number - 1]
        self.shapes = x.shape, source.shape
        self.x = self._factor(products.rows(x))
        self.source = self.x if self.number == 1 else self._factor(products.rows(source))
        arrays = [np.from_dlpack(each.detach()) for each in inputs[self.number :]]
        self.matrices, biases = [self._factor(each) for each in arrays[:4]], arrays[4:] or [None] * 4
        self.scale = (self.matrices[0].shape[1] // self.heads) ** -0.5
        q, k, v = self._columns(self._side_by_side())
        gemm(self.x, self.matrices[0], q, scale=self.scale, bias=biases[0])
        gemm(self.source, self.matrices[1], k, bias=biases[1])
        gemm(self.source, self.matrices[2], v, bias=biases[2])
        context = np.empty((len(self.x), v.shape[1]), np.float32)
        self.weights.gather(*map(self._by_head, (q, k, v, context)))
        self.context = self._factor(context)
        y = paddle_compat.empty([*x.shape[:2], self.matrices[3].shape[1]])
        gemm(self.context, self.matrices[3], products.rows(y), bias=biases[3])
        return y

    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        arrays, scale = self._side_by_side(), self.scale
        of_q, of_k, of_v = self._columns(arrays)
        of_y = products.rows(gradient)
        up = self._factor(of_y)
        of_context = gemm(up, self.matrices[3], np.empty(self.context.shape, np.float32), transpose_b=True)
        self.weights.gradients(*map(self._by_head, (of_context, of_q, of_k, of_v)))
        q, k, v = self._columns([self._factor(each) for each in arrays])
        of_inputs = [paddle_compat.empty(shape) for shape in self.shapes[: self.number]]
        of_x, of_source = products.rows(of_inputs[0]), products.rows(of_inputs[-1])
        gemm(q, self.matrices[0], of_x, transpose_b=True, scale=scale)
        gemm(k, self.matrices[1], of_source, transpose_b=True, add=self.number == 1)
        gemm(v, self.matrices[2], of_source, transpose_b=True, add=True)
        pairs = (self.x, q, scale), (self.source, k, 1.0), (self.source, v, 1.0), (self.context, up, 1.0)
        of_weights = [products.of_weight(*each) for each in pairs]
        if len(self.wanted) == self.number + 4:
            return [*of_inputs, *of_weights]
        of_biases = [products.of_bias(of_q, scale), *map(products.of_bias, (of_k, of_v, of_y))]
        return [*of_inputs, *of_weights, *of_biases]

    def _factor(self, x: np.ndarray) -> np.ndarray:
        return products.factor(x, self.kind)

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
