"""AdamW whose decay never works against the update."""

from __future__ import annotations

import paddle
from paddle import Tensor

from paddle_tfm.protocols import is_decayed
from paddle_tfm_plugins.optimizer._update_rule import State, UpdateRule, update_moments
from paddle_tfm_plugins.optimizer.adamw import AdamW


class CautiousAdamW(UpdateRule, AdamW):
    """Cautious weight decay: `adamw` that decays a weight only where its update shrinks it too (arXiv:2510.12402).

    w -= rate · (u + weight_decay · 1[u · w ≥ 0] · w), u = m̂ / (sqrt(v̂) + epsilon) the update of Adam, for each element
    of w by itself. So the decay pulls no weight back from where the loss moves it, and what is minimized is the loss
    alone. It spares parameters of one dimension and those marked by `no_decay` (gains, biases, mixers).

    Options:
        beta1, beta2, epsilon: Adam's. weight_decay: apart from the gradient.

    Raises:
        ValueError: beta1 or beta2 is not in [0, 1); epsilon is not positive; weight_decay is negative.
    """

    def update(self, parameter: Tensor, gradient: Tensor, state: State, t: int, rate: float) -> None:
        update_moments(state, gradient, self.beta1, self.beta2)
        root = paddle.sqrt(state["second"] / (1.0 - self.beta2**t)) + self.epsilon
        step = state["first"] / (1.0 - self.beta1**t) / root
        if self.weight_decay and is_decayed(parameter):
            step = step + self.weight_decay * parameter * (step * parameter >= 0.0).astype(step.dtype)
        parameter.subtract_(step * rate)
