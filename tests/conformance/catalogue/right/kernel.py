"""A kernel of a norm, in NumPy, with a backward of its own."""

import numpy as np  # noqa: F401  (of wrong ones)
import paddle
from paddle import nn

from paddle_tfm.kernels import function
from paddle_tfm.protocols import Kernel, Norm


class _Centred(Norm):
    """Each sentence less the mean of its real tokens, times a gain, with a bias: x [B, T, C] → [B, T, C]."""

    def __init__(self, d_model: int):
        super().__init__()
        self.weight = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))
        self.bias = self.create_parameter([d_model], is_bias=True)

    def forward(self, x, valid=None, positions=None):
        real = valid.astype(x.dtype).unsqueeze(-1)  # [B, T, 1]
        mean = (x * real).sum(1, keepdim=True) / real.sum(1, keepdim=True)
        return (x - mean) * self.weight + self.bias


class _Function(function.Function):
    def __init__(self, valid):
        real = valid.numpy()[..., None].astype("float32")
        self.share = real / real.sum(1, keepdims=True)  # [B, T, 1]: of the mean

    def forward(self, *inputs):
        x, self.weight, bias = (each.numpy() for each in inputs)
        self.centred = x - (x * self.share).sum(1, keepdims=True)
        return paddle.to_tensor(self.centred * self.weight + bias)

    def backward(self, gradient):
        g = gradient.numpy()
        up = g * self.weight
        of_x = up - self.share * up.sum(1, keepdims=True)
        gradients = of_x, (g * self.centred).sum((0, 1)), g.sum((0, 1))
        return [paddle.to_tensor(each) for each in gradients]


class Twin(Kernel):
    of = _Centred
    device = "cpu"

    def fits(self, call):
        return call.mode.phase == "step" and call.args[0].dtype == paddle.float32

    def run(self, call):
        x, valid, _ = call.args
        return function.apply(_Function(valid), x, call.layer.weight, call.layer.bias)
