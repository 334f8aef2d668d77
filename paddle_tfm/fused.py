"""Functions with a backward of their own, of one input or several, for the steps of a training.

Two rules of Paddle's `PyLayer` decide how. Where it has several inputs, its backward must return None for those whose
gradient nobody asks for, and is not told which; where all of them are in one list, of which the first always needs a
gradient, it may return the gradients of all. And a graph with a `PyLayer` in it cannot be walked back twice by
`backward(retain_graph=True)`: the process ends. So these functions take part in steps only, whose graphs are walked
back once; elsewhere Paddle's own operations compute the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import paddle
from paddle import Tensor
from paddle.autograd import PyLayer


class Function:
    """One call of a function with a backward of its own; its attributes hold what the backward needs.

    The backward runs once, and all that is held is given up after it, while the rest of the graph is still walked back;
    so it may write to what is held. What is held of inputs and outputs must be detached, or the graph holds itself.
    """

    def forward(self, *inputs: Tensor) -> Tensor:
        """The output, computed without gradients: a tensor that shares no memory with an input of this call that needs
        a gradient and is no one's output."""
        raise NotImplementedError

    def backward(self, gradient: Tensor) -> Sequence[Tensor | None]:
        """The gradient of each input from the output's, which must not be written to."""
        raise NotImplementedError


def apply(function: Function, *inputs: Tensor) -> Tensor:
    """The output of `function` for `inputs`, through which gradients flow to any part of them."""
    if not paddle.is_grad_enabled() or all(each.stop_gradient for each in inputs):
        with paddle.no_grad():
            return function.forward(*inputs)
    return _Call.apply([_needs_gradient(), *inputs], function)


class _Call(PyLayer):
    @staticmethod
    def forward(ctx, inputs: list[Tensor], function: Function) -> Tensor:
        ctx.function = function
        return function.forward(*inputs[1:])

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Any:
        function, ctx.function = ctx.function, None  # Paddle keeps `ctx` until the loss is gone
        if function is None:
            raise RuntimeError("a graph with a function of its own backward must be walked back once, but is again")
        return [None, *function.backward(gradient)]


_FIRST: list[Tensor] = []


def _needs_gradient() -> Tensor:
    if not _FIRST:
        _FIRST.append(paddle.zeros([1]))
        _FIRST[0].stop_gradient = False
    return _FIRST[0]
