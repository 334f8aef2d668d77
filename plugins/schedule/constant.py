"""A constant learning rate."""

from __future__ import annotations

from paddle_tfm.protocols import Schedule
from paddle_tfm.validators import positive


class Constant(Schedule):
    """The same learning rate at every step."""

    def __init__(self, learning_rate: float = 1e-3):
        positive(learning_rate=learning_rate)
        self.learning_rate = learning_rate

    def __call__(self, step: int) -> float:
        return self.learning_rate
