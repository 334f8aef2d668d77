"""Adam."""

from __future__ import annotations

from collections.abc import Sequence

import paddle
from paddle import Tensor

from paddle_tfm import paddle_compat
from paddle_tfm.protocols import Optimizer
from paddle_tfm.validators import between, positive
from paddle_tfm_plugins.optimizer._complete_state import CompleteState


class Adam(Optimizer):
    """Adam with the constants of the first Transformer, arXiv:1412.6980.

    m = β1 m + (1 - β1) g, v = β2 v + (1 - β2) g², w -= rate · m̂ / (sqrt(v̂) + ε), with m̂ = m / (1 - β1ᵗ) and v̂
    likewise.
    """

    adam_like = True

    def __init__(self, beta1: float = 0.9, beta2: float = 0.98, epsilon: float = 1e-9):
        between("[0, 1)", beta1=beta1, beta2=beta2)
        positive(epsilon=epsilon)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def create(self, parameters: Sequence[Tensor]) -> paddle.optimizer.Optimizer:
        return FusedAdam(
            learning_rate=0.0,  # the trainer sets it before each step
            beta1=self.beta1,
            beta2=self.beta2,
            epsilon=self.epsilon,
            parameters=list(parameters),
        )


@paddle_compat.named_adam
class FusedAdam(CompleteState, paddle.optimizer.Adam):
    """Paddle's Adam, all parameters in one call: on a CPU a half to a third of the time of a call for each.

    Paddle's own switch for it, `use_multi_tensor`, ends with an error where a parameter has no gradient, such as an
    expert that no token was routed to; so it is set at each step. Both ways keep their moments in the same place, and a
    parameter without a gradient stays as it is.
    """

    def __init__(self, **options: object):
        super().__init__(use_multi_tensor=paddle_compat.has_fused_adam(), **options)

    def step(self) -> None:
        """One update of every parameter that has a gradient."""
        uniform = all(parameter.grad is not None and parameter.dtype == paddle.float32 for parameter in self.parameters)
        paddle_compat.fuse_updates(self, uniform)
        super().step()
