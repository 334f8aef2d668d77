"""Paddle's optimizers of two moments, with a state that is whole at any moment."""

from __future__ import annotations

from collections.abc import Mapping

import paddle
from paddle import Tensor


class CompleteState:
    """Before one of Paddle's Adams among the base classes: takes up all loaded moments at once.

    Paddle does so parameter by parameter, when each next has a gradient. Until then they would be missing from
    `state_dict`, so that the next checkpoint loses them; and a parameter that has its first gradient meanwhile, such as an
    expert that no token chose before, would be an error.
    """

    def set_state_dict(self, state_dict: Mapping[str, Tensor]) -> None:
        """Go on from what `state_dict` gave."""
        super().set_state_dict(dict(state_dict))
        known = [parameter for parameter in self._parameter_list if f"{parameter.name}_moment1_0" in state_dict]
        with paddle.utils.unique_name.guard():  # the names of moments end in _0, as in a step of the trainer
            self._create_accumulators(paddle.static.default_main_program().global_block(), known)
