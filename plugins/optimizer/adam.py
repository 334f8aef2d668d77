"""Adam."""

from __future__ import annotations

from collections.abc import Sequence

import paddle
from paddle import Tensor

from paddle_tfm.protocols import Optimizer


class Adam(Optimizer):
    """Adam with the constants of the first Transformer, arXiv:1412.6980.

    m = β1 m + (1 - β1) g, v = β2 v + (1 - β2) g², w -= rate · m̂ / (sqrt(v̂) + ε), with m̂ = m / (1 - β1ᵗ) and v̂ likewise.
    """

    def __init__(self, beta1: float = 0.9, beta2: float = 0.98, epsilon: float = 1e-9):
        check(beta1, beta2, epsilon)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def create(self, parameters: Sequence[Tensor]) -> paddle.optimizer.Optimizer:
        # Not `use_multi_tensor`, though that update takes half the time (1% to 3% of a step): it ends with an error where
        # a parameter has its first gradient in a later step, such as an expert that no token chose before.
        return paddle.optimizer.Adam(
            learning_rate=0.0,  # the trainer sets it before each step
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self.epsilon,
            parameters=list(parameters),
        )


def check(beta1: float, beta2: float, epsilon: float) -> None:
    """Raises ValueError for constants with which Adam makes no sense."""
    for name, value in (("beta1", beta1), ("beta2", beta2)):
        if not 0 <= value < 1:
            raise ValueError(f"`{name}` must be at least 0 and below 1, but is {value}")
    if not epsilon > 0:
        raise ValueError(f"`epsilon` must be positive, but is {epsilon}")
