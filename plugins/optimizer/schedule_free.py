"""AdamW whose average replaces the end of a schedule."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import paddle
from paddle import Tensor

from paddle_tfm.protocols import is_decayed
from paddle_tfm.validators import between, not_negative, positive
from paddle_tfm_plugins.optimizer._update_rule import State, UpdateRule

SMALLEST = 1e-30  # of a sum of squared rates


class ScheduleFree(UpdateRule):
    """Schedule-free AdamW: an average takes the place of a falling learning rate (Defazio 2024, arXiv:2405.15682).

    Gradients are those at y, steps are taken by z, and the model is evaluated and saved at their average x:

        y = (1 − β1) z + β1 x, g = ∂loss/∂y, v = β2 v + (1 − β2) g²
        z -= rate · (g / (sqrt(v / (1 − β2ᵗ)) + ε) + weight_decay · y)
        x = (1 − c) x + c z, c = r² / Σ r², r the largest rate so far

    Parameters hold y while they are trained; z and v are the state, and x follows from y and z. The schedule should
    warm up and then stay (`{name: wsd, decay: 0.0}`, `constant`), for x needs no falling rate; the rate may be larger
    than AdamW's. A norm with running statistics keeps those of y. With `train.ema` the moving average, of y, is
    evaluated in place of x; `train.average` is a mean of several x. The checkpoint to resume from, `last`, holds y.

    Options:
        beta1: how much of y is x. beta2, epsilon: of the second moment. weight_decay: at y; parameters of one
            dimension, and those marked by `no_decay`, are exempt.

    Raises:
        ValueError: beta1 is not in (0, 1), or beta2 not in [0, 1); epsilon is not positive; weight_decay is negative.
    """

    adam_like = True

    def __init__(self, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, weight_decay: float = 0.0):
        between("(0, 1)", beta1=beta1)
        between("[0, 1)", beta2=beta2)
        positive(epsilon=epsilon)
        not_negative(weight_decay=weight_decay)
        self.beta1, self.beta2, self.epsilon, self.weight_decay = beta1, beta2, epsilon, weight_decay

    def start(self, parameter: Tensor) -> State:
        zero = paddle.zeros([1], parameter.dtype)
        return {
            "z": parameter.detach().clone(),
            "second": paddle.zeros_like(parameter),
            "largest_rate": zero,
            "weights": zero.clone(),
        }

    def update(self, parameter: Tensor, gradient: Tensor, state: State, t: int, rate: float) -> None:
        z = state["z"]
        state["second"].scale_(self.beta2).add_(gradient * gradient * (1.0 - self.beta2))
        step = gradient / (paddle.sqrt(state["second"] / (1.0 - self.beta2**t)) + self.epsilon)
        if self.weight_decay and is_decayed(parameter):
            step = step + self.weight_decay * parameter
        largest = state["largest_rate"].clip_(min=rate)
        weight = largest * largest
        c = weight / state["weights"].add_(weight).clip(min=SMALLEST)  # 0 while every rate was 0
        parameter.add_(c * (z - parameter) + (rate * (self.beta1 * (1.0 - c) - 1.0)) * step)
        z.subtract_(step * rate)

    @contextmanager
    def evaluated(self, optimizer: paddle.optimizer.Optimizer) -> Iterator[None]:
        trained = [(optimizer.parameters[index], state) for index, state in optimizer.states.items()]
        before = [parameter.detach().clone() for parameter, _ in trained]  # y
        with paddle.no_grad():
            for y, (parameter, state) in zip(before, trained):
                parameter.set_value(y + (1.0 - 1.0 / self.beta1) * (state["z"] - y))
        try:
            yield
        finally:
            for y, (parameter, _) in zip(before, trained):
                parameter.set_value(y)
