"""The update rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from paddle_tfm.protocols.component import Component

if TYPE_CHECKING:
    import paddle
    from paddle import Tensor


class Optimizer(Component):
    """The update rule."""

    kind: ClassVar[str] = "optimizer"

    def create(self, parameters: Sequence[Tensor]) -> paddle.optimizer.Optimizer:
        """A Paddle optimizer over `parameters`; the trainer sets its learning rate before each step."""
        raise NotImplementedError
