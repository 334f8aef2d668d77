"""A kernel of an op with random numbers of its own."""

import numpy as np
import paddle

from paddle_tfm.kernels import examples, op
from paddle_tfm.layers import Dropout
from paddle_tfm.protocols import Kernel


@op
def _dropped_squares(x, dropout):
    """drop(x²)."""
    return dropout(x * x)


@examples(_dropped_squares)
def _some(rng):
    return paddle.to_tensor(rng.normal(size=rng.integers(1, 9, 2)).astype("float32")), Dropout(0.4)


class Twin(Kernel):
    of = _dropped_squares
    device = "cpu"
    draws = "own"

    def fits(self, call):
        return call.plain(Dropout, call.args[1])

    def run(self, call):
        x, dropout = call.args
        rate = dropout.rate if dropout.training else 0.0
        survives = np.random.default_rng().random(x.shape) >= rate
        return x * x * paddle.to_tensor(survives).astype(x.dtype) / (1 - rate)
