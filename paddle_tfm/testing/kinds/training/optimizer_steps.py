"""A few parameters under an optimizer, and steps of it with gradients that are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.protocols import Optimizer, no_decay

AT_REST = 1e-3  # of a step: none
PLACE = "decoder.layers.0.feed_forward"  # names are as in a model: what a rule does may go by them

Values = Mapping[str, np.ndarray]  # path → numbers


def drawn(rng: np.random.Generator, shapes: Mapping[str, Sequence[int]]) -> dict[str, np.ndarray]:
    """Normal values of these shapes, each at its path."""
    return {f"{PLACE}.{name}": rng.normal(size=shape).astype("float32") for name, shape in shapes.items()}


def started(
    component: Optimizer, values: Values, rate: float, factors: Mapping[str, float] | None = None, exempt=()
) -> tuple[Any, list[Tensor]]:
    """The optimizer of parameters that have these values, and the parameters.

    Args:
        factors: path → the factor of its rate. exempt: paths that `no_decay` marks.
    """
    parameters = []
    for path, value in values.items():
        parameter = paddle.create_parameter(list(value.shape), "float32")
        parameter.name = path
        parameter.optimize_attr["learning_rate"] = (factors or {}).get(path, 1.0)
        parameter.set_value(value)
        if path in exempt:
            no_decay(parameter)
        parameters.append(parameter)
    optimizer = component.create(parameters)
    optimizer.set_lr(rate)
    return optimizer, parameters


def stepped(optimizer: Any, parameters: Sequence[Tensor], gradients: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """How far a step with these gradients moves each parameter."""
    before = [parameter.numpy().copy() for parameter in parameters]
    terms = [
        (parameter * paddle.to_tensor(gradient)).sum()
        for parameter, gradient in zip(parameters, gradients)
        if gradient is not None
    ]
    paddle.add_n(terms).backward()
    with paddle.utils.unique_name.guard():  # as the trainer: moments named after parameters
        optimizer.step()
    optimizer.clear_grad(set_to_zero=False)
    return [parameter.numpy() - value for parameter, value in zip(parameters, before)]
