"""What optimizers written in Python need beside their formula: state, checkpoints, weight decay, moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import paddle
from paddle import Tensor

from paddle_tfm.protocols import Optimizer, is_decayed

State = dict[str, Tensor]


class UpdateRule(Optimizer):
    """An optimizer that updates each parameter that has a gradient by `update`, with a state of its own."""

    def create(self, parameters: Sequence[Tensor]) -> paddle.optimizer.Optimizer:
        return ByRule(parameters, self)

    def start(self, parameter: Tensor) -> State:
        """The state of a parameter before its first update; by default two moments."""
        return {"first": paddle.zeros_like(parameter), "second": paddle.zeros_like(parameter)}

    def update(self, parameter: Tensor, gradient: Tensor, state: State, t: int, rate: float) -> None:
        """The t-th update (from 1 on) of a parameter and of its state, both in place."""
        raise NotImplementedError


class ByRule(paddle.optimizer.Optimizer):
    """Updates each parameter that has a gradient by a rule, and holds the state that this needs between steps.

    A parameter without a gradient stays as it is, and its number of updates, the t of the papers, does not grow.
    `state_dict` holds `name.entry` for each entry of a parameter's state and `name.updates`, for every parameter that
    has had a gradient; so a checkpoint may be written and read before some parameters have had one.
    """

    def __init__(self, parameters: Sequence[Tensor], rule: UpdateRule):
        self.parameters, self.rule = list(parameters), rule
        super().__init__(learning_rate=0.0, parameters=self.parameters)  # the trainer sets the rate before each step
        self.states: dict[int, State] = {}  # by the parameter's index
        self._updates: dict[int, int] = {}

    @paddle.no_grad()
    def step(self) -> None:
        """One update of every parameter that has a gradient."""
        rate = self.get_lr()
        for index, parameter in enumerate(self.parameters):
            if parameter.grad is None:
                continue
            if index not in self.states:
                self.states[index] = self.rule.start(parameter)
            t = self._updates[index] = self._updates.get(index, 0) + 1
            factor = parameter.optimize_attr["learning_rate"]  # `Initializer.rate_factor`
            self.rule.update(parameter, parameter.grad, self.states[index], t, rate * factor)

    def state_dict(self) -> State:
        """The state of every parameter that has had a gradient, by the parameter's name."""
        entries = {}
        for index, state in self.states.items():
            name = self.parameters[index].name
            entries |= {f"{name}.{entry}": value for entry, value in state.items()}
            entries[f"{name}.updates"] = paddle.to_tensor([self._updates[index]], dtype="int64")
        return entries

    def set_state_dict(self, state_dict: Mapping[str, Tensor]) -> None:
        """Continue from what `state_dict` returned.

        Raises:
            ValueError: it is not that of these parameters under this rule.
        """
        unread = dict(state_dict)
        states: dict[int, State] = {}
        updates: dict[int, int] = {}
        for index, parameter in enumerate(self.parameters):
            if f"{parameter.name}.updates" not in unread:
                continue
            updates[index] = unread.pop(f"{parameter.name}.updates").item()
            states[index] = self.rule.start(parameter)
            for entry, value in states[index].items():
                saved = unread.pop(f"{parameter.name}.{entry}", None)
                if saved is None or list(saved.shape) != list(value.shape):
                    raise ValueError(f"the optimizer's state has no '{parameter.name}.{entry}' of shape {value.shape}")
                value.set_value(saved)
        if unread:
            raise ValueError(f"the optimizer's state has '{min(unread)}', which belongs to no parameter")
        self.states, self._updates = states, updates


def decay_weights(parameter: Tensor, rate: float, weight_decay: float) -> None:
    """w *= 1 − rate · weight_decay for weights and tables; gains and biases are exempt (`is_decayed`)."""
    if weight_decay and is_decayed(parameter):
        parameter.scale_(1.0 - rate * weight_decay)


def update_moments(state: State, gradient: Tensor, beta1: float, beta2: float) -> None:
    """m = β1 m + (1 − β1) g and v = β2 v + (1 − β2) g², in place."""
    state["first"].scale_(beta1).add_(gradient * (1.0 - beta1))
    state["second"].scale_(beta2).add_(gradient * gradient * (1.0 - beta2))
