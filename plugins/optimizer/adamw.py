"""Adam with decoupled weight decay."""

from __future__ import annotations

from collections.abc import Sequence

import paddle
from paddle import Tensor

from paddle_tfm.protocols import Optimizer, is_decayed
from paddle_tfm.validators import between, not_negative, positive
from paddle_tfm_plugins.optimizer._complete_state import CompleteState


class AdamW(Optimizer):
    """Adam with decoupled weight decay, apart from the gradient, arXiv:1711.05101.

    As `adam`, after w *= 1 - rate · weight_decay for parameters of two or more dimensions that are not marked
    by `no_decay`; gains and biases are exempt.
    """

    adam_like = True

    def __init__(self, beta1: float = 0.9, beta2: float = 0.98, epsilon: float = 1e-9, weight_decay: float = 0.01):
        between("[0, 1)", beta1=beta1, beta2=beta2)
        positive(epsilon=epsilon)
        not_negative(weight_decay=weight_decay)
        self.beta1, self.beta2, self.epsilon, self.weight_decay = beta1, beta2, epsilon, weight_decay

    def create(self, parameters: Sequence[Tensor]) -> paddle.optimizer.Optimizer:
        parameters = list(parameters)
        decayed = {parameter.name for parameter in parameters if is_decayed(parameter)}
        return DecoupledAdamW(
            learning_rate=0.0,  # the trainer sets it before each step
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self.epsilon,
            parameters=parameters,
            weight_decay=self.weight_decay,
            apply_decay_param_fun=decayed.__contains__,
        )


class DecoupledAdamW(CompleteState, paddle.optimizer.AdamW):
    """Paddle's AdamW, with a complete state."""
