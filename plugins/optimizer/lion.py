"""The sign of a momentum."""

from __future__ import annotations

import paddle
from paddle import Tensor

from paddle_tfm.validators import between, not_negative
from paddle_tfm_plugins.optimizer._update_rule import State, UpdateRule, decay_weights


class Lion(UpdateRule):
    """Lion: each weight moves by the rate, in the direction of the sign of a momentum (Chen 2023, arXiv:2302.06675).

    c = β1 m + (1 − β1) g, w -= rate · (sign(c) + weight_decay · w), m = β2 m + (1 − β2) g. One moment is kept, half of
    Adam's memory. As every weight moves by the whole rate, the paper takes a rate 3 to 10 times smaller than Adam's and
    a decay as many times larger. Here the decay spares parameters of one dimension and those marked by `no_decay`
    (gains, biases, mixers); a weight whose gradient has always been zero, such as the embedding of padding, stays where
    it is.

    Options:
        beta1: of the direction. beta2: of the momentum. weight_decay: apart from the gradient; 0: none.

    Raises:
        ValueError: beta1 or beta2 is not in [0, 1); weight_decay is negative.
    """

    adam_like = True

    def __init__(self, beta1: float = 0.9, beta2: float = 0.99, weight_decay: float = 0.0):
        between("[0, 1)", beta1=beta1, beta2=beta2)
        not_negative(weight_decay=weight_decay)
        self.beta1, self.beta2, self.weight_decay = beta1, beta2, weight_decay

    def start(self, parameter: Tensor) -> State:
        return {"momentum": paddle.zeros_like(parameter)}

    def update(self, parameter: Tensor, gradient: Tensor, state: State, t: int, rate: float) -> None:
        momentum = state["momentum"]
        direction = paddle.sign(self.beta1 * momentum + (1.0 - self.beta1) * gradient)
        decay_weights(parameter, rate, self.weight_decay)
        parameter.subtract_(direction * rate)
        momentum.scale_(self.beta2).add_(gradient * (1.0 - self.beta2))
