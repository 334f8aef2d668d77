"""AdamW whose decay never works against the update."""

from __future__ import annotations

from collections.abc import Sequence

import paddle
from paddle import Tensor

from paddle_tfm.protocols import Optimizer, is_decayed
from paddle_tfm.validators import between, not_negative, positive
from paddle_tfm_plugins.optimizer._update_rule import State, UpdateRule, update_moments


class CautiousAdamW(Optimizer):
    """Cautious weight decay: `adamw` that decays a weight only where its update shrinks it too (arXiv:2510.12402).

    w -= rate · (u + weight_decay · 1[u · w ≥ 0] · w), u = m̂ / (sqrt(v̂) + epsilon) the update of Adam, for each element
    of w by itself. So the decay pulls no weight back from where the loss moves it, and what is minimized is the loss
    alone. It spares parameters of one dimension and those marked by `no_decay` (gains, biases, mixers).

    Options:
        beta1, beta2, epsilon: Adam's. weight_decay: apart from the gradient.

    Raises:
        ValueError: beta1 or beta2 is not in [0, 1); epsilon is not positive; weight_decay is negative.
    """

    adam_like = True

    def __init__(self, beta1: float = 0.9, beta2: float = 0.98, epsilon: float = 1e-9, weight_decay: float = 0.01):
        between("[0, 1)", beta1=beta1, beta2=beta2)
        positive(epsilon=epsilon)
        not_negative(weight_decay=weight_decay)
        self.beta1, self.beta2, self.epsilon, self.weight_decay = beta1, beta2, epsilon, weight_decay

    def create(self, parameters: Sequence[Tensor]) -> paddle.optimizer.Optimizer:
        return CautiousRule(parameters, self)


class CautiousRule(UpdateRule):
    """The update of the class above, parameter by parameter."""

    def __init__(self, parameters: Sequence[Tensor], options: CautiousAdamW):
        super().__init__(parameters)
        self.options = options

    def start(self, parameter: Tensor) -> State:
        return {"first": paddle.zeros_like(parameter), "second": paddle.zeros_like(parameter)}

    def update(self, parameter: Tensor, gradient: Tensor, state: State, t: int, rate: float) -> None:
        options = self.options
        update_moments(state, gradient, options.beta1, options.beta2)
        root = paddle.sqrt(state["second"] / (1.0 - options.beta2**t)) + options.epsilon
        step = state["first"] / (1.0 - options.beta1**t) / root
        if options.weight_decay and is_decayed(parameter):
            step = step + options.weight_decay * parameter * (step * parameter >= 0.0).astype(step.dtype)
        parameter.subtract_(step * rate)
