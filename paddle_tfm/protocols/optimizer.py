"""The update rule."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, ClassVar

from paddle_tfm.protocols.component import Component

if TYPE_CHECKING:
    import paddle
    from paddle import Tensor


class Optimizer(Component):
    """The update rule, such as w ← w − rate · m with m = momentum · m + ∂loss/∂w.

    Givens: none; the trainer sets the learning rate before each step, and clips gradients by their global norm.

    Invariances: a parameter without a gradient stays as it is; its steps come from its own gradients, its own number
        of updates and its own factor of the rate, and weight decay spares what `is_decayed` does not name; the state
        survives a checkpoint to the bit.
    Expected failures: `expected_failures` names checks such as "inertia", each with a reason.

    Example::

        import paddle
        from paddle_tfm.protocols import Optimizer
        from paddle_tfm.validators import between

        class HeavyBall(Optimizer):
            def __init__(self, momentum: float = 0.9):
                between("[0, 1)", momentum=momentum)
                self.momentum = momentum

            def create(self, parameters):
                return paddle.optimizer.Momentum(0.0, self.momentum, parameters=list(parameters))
    """

    kind: ClassVar[str] = "optimizer"
    adam_like: bool = False  # whether its updates grow with the width as Adam's do: muP's rates are for these alone

    def create(self, parameters: Sequence[Tensor]) -> paddle.optimizer.Optimizer:
        """A Paddle optimizer over `parameters`; the trainer sets its learning rate before each step."""
        raise NotImplementedError

    def evaluated(self, optimizer: paddle.optimizer.Optimizer) -> AbstractContextManager[None]:
        """Within this block the parameters that `optimizer`, from `create`, trains are where the model is evaluated and
        saved, such as an average of where they have been; after it they are to the bit what they were before. By
        default that is where they are trained."""
        return nullcontext()
