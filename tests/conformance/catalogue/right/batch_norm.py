"""Batch normalization over real tokens: the twin of mutants of statistics."""

import paddle
from paddle import nn

from paddle_tfm.protocols import Norm


class Twin(Norm):
    invariances = frozenset({"channel_scale", "channel_shift"})
    expected_failures = {
        "causal_in_training": "statistics of the batch",
        "neighbours_in_training": "statistics of the batch",
    }

    def __init__(self, d_model: int, momentum: float = 0.1, eps: float = 1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(1.0))
        self.bias = self.create_parameter([d_model], is_bias=True)
        self.register_buffer("mean", paddle.zeros([d_model], self.weight.dtype))
        self.register_buffer("variance", paddle.ones([d_model], self.weight.dtype))

    def forward(self, x, valid=None, positions=None):
        real = valid.astype(x.dtype).unsqueeze(-1)
        mean, variance = self.mean, self.variance
        if self.training and float(real.sum()) > 1:
            count = real.sum()
            mean = (x * real).sum([0, 1]) / count
            variance = (((x - mean) ** 2) * real).sum([0, 1]) / count
            self.remember(mean.detach(), variance.detach())
        return ((x - mean) / paddle.sqrt(variance + self.eps) * self.weight + self.bias) * real

    @paddle.no_grad()
    def remember(self, mean, variance):
        self.mean.set_value(self.mean + self.momentum * (mean - self.mean))
        self.variance.set_value(self.variance + self.momentum * (variance - self.variance))
