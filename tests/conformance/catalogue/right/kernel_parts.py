"""A kernel of a layer with parts, which drops what the formula drops."""

import math

import paddle
import paddle.nn.functional as F

from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import FeedForward, Kernel


class _Squares(FeedForward):
    """drop((x W1 + b1)²) W2 + b2."""

    def __init__(self, d_model: int, d_ff: int, dropout: float):
        super().__init__()
        self.inner, self.output = Linear(d_model, d_ff), Linear(d_ff, d_model)
        self.dropout = Dropout(dropout)

    def forward(self, x, info, tap):
        return self.output(self.dropout(self.inner(x).square()))


class Twin(Kernel):
    of = _Squares
    device = "cpu"

    def fits(self, call):
        layer = call.layer
        return call.plain(Linear, layer.inner, layer.output) and call.plain(Dropout, layer.dropout)

    def run(self, call):
        layer, (x, *_) = call.layer, call.args
        hidden = F.linear(x, layer.inner.weight, layer.inner.bias).square()
        count = math.prod(hidden.shape)
        draw = call.draw(layer.dropout, count)
        if draw is not None:
            survives = draw(0, count).reshape(hidden.shape)
            hidden = hidden * paddle.to_tensor(survives).astype(x.dtype) * layer.dropout.factor
        return F.linear(hidden, layer.output.weight, layer.output.bias)
