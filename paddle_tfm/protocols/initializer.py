"""Initial values of weight matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from paddle_tfm.protocols.component import Component

if TYPE_CHECKING:
    from paddle import Tensor


class Initializer(Component):
    """Initial values of every parameter of two or more dimensions that is not marked by `keep_initial`."""

    kind: ClassVar[str] = "initializer"
    givens = frozenset({"d_model"})

    def draw(self, rng, shape: Sequence[int], role: str):
        """A NumPy array of `shape` ([fan_in, fan_out] for a matrix, [V, C] for a table). `role`: weight | embedding.
        `rng` is a NumPy generator that belongs to the parameter's path."""
        raise NotImplementedError


def keep_initial(parameter: Tensor) -> Tensor:
    """Mark a parameter whose initial value belongs to the method (a zero gate): the recipe's initializer leaves it."""
    parameter.keep_initial = True
    return parameter
