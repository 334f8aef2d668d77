"""Functions with a backward of their own, of one input or several, for the steps of a training.

Two rules of Paddle's `PyLayer` decide how. Several inputs stand in one list behind `paddle_compat.anchor`. And a graph
with a `PyLayer` in it cannot be walked back twice by `backward(retain_graph=True)`: the process ends. So these
functions take part in steps only, whose graphs are walked back once; elsewhere the formulas compute the same.
`paddle.grad` may walk one back again, through functions that keep what they hold (`once` is false).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import paddle
from paddle import Tensor
from paddle.autograd import PyLayer

from paddle_tfm import paddle_compat


class Function:
    """One call of a function with a backward of its own; its attributes hold what the backward needs.

    With `once` the backward runs once, and all that is held is given up after it, while the rest of the graph is still
    walked back; so it may write to what is held, which must be detached from the graph. Without, what is held stays as
    it is until the graph is gone, and the function may have a second derivative.
    """

    once = True
    wanted: Sequence[bool]  # whether each input's gradient may be asked for; set before `forward`

    def forward(self, *inputs: Tensor) -> Tensor:
        """The output, computed without gradients: a tensor that shares no memory with an input of this call that needs
        a gradient and is no one's output."""
        raise NotImplementedError

    def backward(self, gradient: Tensor) -> Sequence[Tensor | None]:
        """The gradient of each input from the output's, which must not be written to."""
        raise NotImplementedError

    def differentiable_backward(self, gradient: Tensor) -> Sequence[Tensor | None]:
        """The same in operations that themselves have gradients, of inputs that were held as they came: what
        `paddle.grad(create_graph=True)` asks for.

        Raises:
            RuntimeError: this function has none.
        """
        raise RuntimeError(
            f"{type(self).__name__.strip('_')} has no second derivative, which must be asked for outside of a training "
            "step, where Paddle computes the same"
        )


def apply(function: Function, *inputs: Tensor) -> Tensor:
    """The output of `function` for `inputs`, through which gradients flow to any part of them."""
    function.wanted = [not each.stop_gradient for each in inputs]
    if not (paddle.is_grad_enabled() and any(function.wanted)):
        with paddle.no_grad():
            return function.forward(*inputs)
    return _Call.apply([paddle_compat.anchor(), *inputs], function)


class _Call(PyLayer):
    @staticmethod
    def forward(ctx, inputs: list[Tensor], function: Function) -> Tensor:
        ctx.function = function
        return function.forward(*inputs[1:])

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Any:
        function = ctx.function
        if function is None:
            raise RuntimeError("a graph with a function of its own backward must be walked back once, but is again")
        if paddle.is_grad_enabled():  # by create_graph: the gradient must itself have one
            return [None, *function.differentiable_backward(gradient)]
        if function.once:
            ctx.function = None  # Paddle keeps `ctx` until the loss is gone
        gradients = function.backward(gradient)
        if len(gradients) != len(function.wanted):
            raise ValueError(
                f"`backward` of {type(function).__name__} must give a gradient, or None, for each of "
                f"{len(function.wanted)} inputs, but gives {len(gradients)}"
            )
        return [None, *gradients]
