"""Right norms that the zoo does not have, or has in another form."""

import paddle
from paddle import nn

from paddle_tfm.protocols import Norm


def ones(layer, width):
    return layer.create_parameter([width], default_initializer=nn.initializer.Constant(1.0))


class UnitLength(Norm):
    """x / |x| · g · sqrt(C), one gain for all channels (Nguyen & Salazar 2019, arXiv:1910.05895)."""

    invariances = frozenset({"scale"})

    def __init__(self, d_model):
        super().__init__()
        self.g = self.create_parameter([1], default_initializer=nn.initializer.Constant(d_model**0.5))

    def forward(self, x, valid=None, positions=None):
        return x / paddle.clip(x.norm(axis=-1, keepdim=True), min=1e-5) * self.g


class PartialRMS(Norm):
    """pRMSNorm: the root mean square of the first eighth of the channels (arXiv:1910.07467, section 4)."""

    invariances = frozenset({"scale"})

    def __init__(self, d_model):
        super().__init__()
        self.gain, self.part = ones(self, d_model), max(1, d_model // 8)

    def forward(self, x, valid=None, positions=None):
        size = paddle.sqrt((x[..., : self.part] ** 2).mean(-1, keepdim=True) + 1e-6)
        return x / size * self.gain


class OnePlusGain(Norm):
    """RMS norm with a gain of 1 + w, w from zero (Gemma, arXiv:2403.08295)."""

    invariances = frozenset({"scale"})

    def __init__(self, d_model):
        super().__init__()
        self.w = self.create_parameter([d_model], default_initializer=nn.initializer.Constant(0.0))

    def forward(self, x, valid=None, positions=None):
        return x * paddle.rsqrt((x**2).mean(-1, keepdim=True) + 1e-6) * (1.0 + self.w)


class MeanOnly(Norm):
    """x − mean(x): the shift of layer norm without its scale."""

    invariances = frozenset({"shift"})

    def __init__(self, d_model):
        super().__init__()
        self.gain = ones(self, d_model)

    def forward(self, x, valid=None, positions=None):
        return (x - x.mean(-1, keepdim=True)) * self.gain


class Arctangent(Norm):
    """γ atan(α x) + β: bounded and point-wise, as dynamic tanh (arXiv:2503.10622)."""

    def __init__(self, d_model):
        super().__init__()
        self.alpha = self.create_parameter([1], default_initializer=nn.initializer.Constant(0.5))
        self.gamma, self.beta = ones(self, d_model), self.create_parameter([d_model], is_bias=True)

    def forward(self, x, valid=None, positions=None):
        return self.gamma * paddle.atan(self.alpha * x) + self.beta
