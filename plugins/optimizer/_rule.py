"""Update rules written in Python: what they need beside their formula, and the constants that several share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import paddle
from paddle import Tensor

State = dict[str, Tensor]


class Rule(paddle.optimizer.Optimizer):
    """Updates each parameter that has a gradient by `update`, and keeps what that needs between steps.

    A parameter without a gradient stays as it is, and its number of updates, the t of the papers, does not grow. The
    state, `name.what` and `name.updates` for each parameter that has had a gradient, is whole at any moment: a
    checkpoint may be written and read before some parameters have had one.
    """

    def __init__(self, parameters: Sequence[Tensor]):
        self.parameters = list(parameters)
        super().__init__(learning_rate=0.0, parameters=self.parameters)  # the trainer sets the rate before each step
        self._kept: dict[int, State] = {}  # by the parameter's place
        self._updates: dict[int, int] = {}

    def start(self, parameter: Tensor) -> State:
        """What is kept for a parameter, before its first update."""
        raise NotImplementedError

    def update(self, parameter: Tensor, gradient: Tensor, state: State, t: int, rate: float) -> None:
        """The t-th update (from 1 on) of a parameter and of its state, both in place."""
        raise NotImplementedError

    @paddle.no_grad()
    def step(self) -> None:
        """One update of every parameter that has a gradient."""
        rate = self.get_lr()
        for place, parameter in enumerate(self.parameters):
            if parameter.grad is None:
                continue
            if place not in self._kept:
                self._kept[place] = self.start(parameter)
            t = self._updates[place] = self._updates.get(place, 0) + 1
            self.update(parameter, parameter.grad, self._kept[place], t, rate)

    def state_dict(self) -> State:
        """The state of every parameter that has had a gradient, by the parameter's name."""
        found = {}
        for place, state in self._kept.items():
            name = self.parameters[place].name
            found |= {f"{name}.{what}": value for what, value in state.items()}
            found[f"{name}.updates"] = paddle.to_tensor([self._updates[place]], dtype="int64")
        return found

    def set_state_dict(self, state_dict: Mapping[str, Tensor]) -> None:
        """Go on from what `state_dict` gave.

        Raises:
            ValueError: it is not that of these parameters under this rule.
        """
        given = dict(state_dict)
        kept: dict[int, State] = {}
        updates: dict[int, int] = {}
        for place, parameter in enumerate(self.parameters):
            if f"{parameter.name}.updates" not in given:
                continue
            updates[place] = given.pop(f"{parameter.name}.updates").item()
            kept[place] = self.start(parameter)
            for what, value in kept[place].items():
                found = given.pop(f"{parameter.name}.{what}", None)
                if found is None or list(found.shape) != list(value.shape):
                    raise ValueError(f"the optimizer's state has no '{parameter.name}.{what}' of shape {value.shape}")
                value.set_value(found)
        if given:
            raise ValueError(f"the optimizer's state has '{min(given)}', which belongs to no parameter")
        self._kept, self._updates = kept, updates


def shrink(parameter: Tensor, rate: float, weight_decay: float) -> None:
    """w *= 1 − rate · weight_decay for parameters of two or more dimensions; gains and biases are spared."""
    if weight_decay and parameter.ndim >= 2:
        parameter.scale_(1.0 - rate * weight_decay)


def moments(state: State, gradient: Tensor, beta1: float, beta2: float) -> None:
    """m = β1 m + (1 − β1) g and v = β2 v + (1 − β2) g², in place."""
    state["first"].scale_(beta1).add_(gradient * (1.0 - beta1))
    state["second"].scale_(beta2).add_(gradient * gradient * (1.0 - beta2))
