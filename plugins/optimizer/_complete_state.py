"""A complete state for Paddle's optimizers of two moments, before every parameter has had a gradient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paddle import Tensor

from paddle_tfm import paddle_compat


class CompleteState:
    """A mix-in, before one of Paddle's Adams among the base classes: restores all saved moments at once.

    Paddle restores a parameter's moments when it next has a gradient. Until then they would be missing from
    `state_dict`, so that the next checkpoint loses them; and a parameter that has its first gradient meanwhile, such as
    an expert that no token was routed to before, would be an error.
    """

    def __init__(self, *, parameters: Sequence[Tensor], **options: object):
        self.parameters = list(parameters)
        super().__init__(parameters=self.parameters, **options)

    def set_state_dict(self, state_dict: Mapping[str, Tensor]) -> None:
        """Continue from what `state_dict` returned."""
        super().set_state_dict(dict(state_dict))
        restored = [parameter for parameter in self.parameters if f"{parameter.name}_moment1_0" in state_dict]
        paddle_compat.create_moments(self, restored)
