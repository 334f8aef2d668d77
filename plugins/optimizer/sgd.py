"""Stochastic gradient descent."""

from __future__ import annotations

import paddle
from paddle import Tensor

from paddle_tfm.language import _
from paddle_tfm.validators import between, not_negative
from paddle_tfm_plugins.optimizer._update_rule import State, UpdateRule, decay_weights


class SGD(UpdateRule):
    """Stochastic gradient descent with momentum, Nesterov's if wanted (as in Bengio 2012, arXiv:1212.0901).

    v = momentum · v + g, w -= rate · v; with `nesterov` w -= rate · (g + momentum · v), the gradient a step ahead
    (Sutskever 2013, proceedings.mlr.press/v28). v is a sum of gradients, not their mean: a momentum of 0.9 steps ten
    times as far.

    Options:
        momentum: 0 for none. nesterov: see above. weight_decay: apart from the gradient, w *= 1 − rate · weight_decay;
            parameters of one dimension, and those marked by `no_decay`, are exempt.

    Raises:
        ValueError: momentum is not in [0, 1); `nesterov` without momentum; weight_decay is negative.
    """

    def __init__(self, momentum: float = 0.9, nesterov: bool = False, weight_decay: float = 0.0):
        between("[0, 1)", momentum=momentum)
        not_negative(weight_decay=weight_decay)
        if nesterov and not momentum:
            raise ValueError(_("`nesterov` needs a momentum, but `momentum` is 0"))
        self.momentum, self.nesterov, self.weight_decay = momentum, nesterov, weight_decay

    def start(self, parameter: Tensor) -> State:
        return {"velocity": paddle.zeros_like(parameter)} if self.momentum else {}

    def update(self, parameter: Tensor, gradient: Tensor, state: State, t: int, rate: float) -> None:
        step = gradient
        if self.momentum:
            velocity = state["velocity"].scale_(self.momentum).add_(gradient)
            step = gradient + self.momentum * velocity if self.nesterov else velocity
        decay_weights(parameter, rate, self.weight_decay)
        parameter.subtract_(step * rate)
