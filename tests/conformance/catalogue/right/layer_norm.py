"""Layer normalization: the twin of mutants of a norm."""

import paddle
from paddle import nn

from paddle_tfm.protocols import Norm


class Twin(Norm):
    invariances = frozenset({"scale", "shift"})

    def __init__(self, d_model: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))
        self.bias = self.create_parameter([d_model], is_bias=True)

    def forward(self, x, valid=None, positions=None):
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred * centred).mean(-1, keepdim=True)
        return centred / paddle.sqrt(variance + self.eps) * self.weight + self.bias
