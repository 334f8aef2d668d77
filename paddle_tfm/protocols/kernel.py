"""Kernels: a faster way to compute a formula."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from paddle_tfm.kernels import Call
from paddle_tfm.protocols.component import Component


class Kernel(Component):
    """A faster way to compute what a class or an op says: the same values and gradients, up to rounding.

    `of` is exactly that class (a subclass has a formula of its own) or a function of `paddle_tfm.ops`. Two kernels for
    one `of` and device are an error. The engine asks in its steps and searches alone: where `fits` says yes, `run`
    computes the call, else the formula does. An attention is called by `attend`: (x, source, source_info, info, mask,
    tap); other layers by the arguments of `forward`. Nobody hooks a layer whose kernel is asked.

    Givens: none; kernels have no options.

    Invariances: `run` gives the values and gradients of the formula, for every call that fits; it changes no argument,
        but for those that an op's caller gives away; it keeps nothing beyond `call.cache`.
    Expected failures: `expected_failures` names checks, each with a reason.

    Example::

        import numpy as np
        import paddle
        from paddle_tfm.kernels import examples, op
        from paddle_tfm.protocols import Kernel

        @op
        def running_sum(x):  # what a formula calls: x [..., C] → [..., C]
            return paddle.cumsum(x, -1)

        examples(running_sum)(lambda rng: (paddle.to_tensor(rng.normal(size=[2, 9])),))

        class RunningSumByNumPy(Kernel):
            of = running_sum
            device = "cpu"

            def fits(self, call):
                return call.mode.phase == "search"  # it has no gradient

            def run(self, call):
                return paddle.to_tensor(np.cumsum(call.args[0].numpy(), -1))
    """

    kind: ClassVar[str] = "kernel"
    of: ClassVar[Any]
    """The class of a layer that is called (an attention, a norm, a feed-forward or a placement), or an op: one of
    `paddle_tfm.ops`, or of your own, marked by `kernels.op`, with `kernels.examples` of its arguments."""
    device: ClassVar[Literal["cpu", "gpu"]]
    """Where it computes; on other devices nobody asks it."""
    draws: ClassVar[Literal["formula", "own"]] = "formula"
    """Whose random numbers it drops by: the formula's (`call.draw`), or its own, which are compared by statistics."""

    def fits(self, call: Call) -> bool:
        """Whether it computes this call: a cheap look at dtypes, shapes and options, which draws nothing."""
        raise NotImplementedError

    def run(self, call: Call) -> Any:
        """What the formula gives for `call.args`, a new tensor, through which gradients flow in a step. A backward of
        one's own: `paddle_tfm.kernels.function`."""
        raise NotImplementedError
