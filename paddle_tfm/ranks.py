"""Sums over the rows of a batch that other processes have: for components that compute something of a whole batch.

A run that several processes train (`paddle-tfm run --nproc`) gives each of them, a rank, some rows of every batch. What
is computed token by token needs to know nothing of it. A statistic of the whole batch is a function of sums, and is
right with any number of processes if these go through `sum_over_ranks`:

    count = sum_over_ranks(real.sum())
    mean = sum_over_ranks((x * real).sum(0)) / count

An auxiliary loss that is made of such sums has the value of the whole batch in every process, as it should.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm import fused

Total = Callable[[np.ndarray, int], np.ndarray]
"""The sum over all ranks of an array, which each calls with the same number, by which a wrong order is noticed."""


class _Pass:
    """One pass that is divided among ranks: how they sum, and the calls so far, which are the same in each of them."""

    def __init__(self, total: Total):
        self.total, self.calls = total, 0
        self.last: Tensor | None = None


_pass: _Pass | None = None


@contextmanager
def divided(total: Total) -> Iterator[None]:
    """Within this block a pass, forward and backward, is one of several ranks'."""
    global _pass
    before, _pass = _pass, _Pass(total)
    try:
        yield
    finally:
        _pass = before


def calls() -> int:
    """How many sums this pass has taken so far; the same number in every rank. A component that will sum in a backward
    hook asks for it in `forward`, and names its sum by it."""
    return 0 if _pass is None else _pass.calls


def sum_over_ranks(x: Tensor, name: int = 0) -> Tensor:
    """Σ over ranks of x, of any shape, the same in each; its gradient is the sum over ranks of the output's. Where one
    process computes the whole batch, x itself.

    Every rank must call it equally often, in one order, with one shape: in `forward` that is a matter of course. Where
    it is called within a backward hook, which may run in another order, `name` must be what `calls` said in `forward`.
    """
    current = _pass
    if current is None:
        return x
    current.calls += 1
    number = name << 32 if name else current.calls
    # Each call takes the one before it as an input that it ignores. So their backward passes come in the reverse order,
    # in every rank, whatever else is in its graph: an expert that none of its tokens chose is in no graph.
    inputs = [x] if current.last is None or name else [x, current.last]
    out = fused.apply(_Sum(current.total, number), *inputs)
    if not name and not out.stop_gradient:
        current.last = out
    return out


class _Sum(fused.Function):
    """The sum over ranks, forward and backward."""

    def __init__(self, total: Total, number: int):
        self.total, self.number = total, number

    def forward(self, *inputs: Tensor) -> Tensor:
        self.ignored = [(each.shape, each.dtype) for each in inputs[1:]]
        return self._total(inputs[0], self.number)

    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        nothing: list[Tensor | None] = [paddle.zeros(*each) for each in self.ignored]
        return [self._total(gradient, -self.number), *nothing]

    def _total(self, x: Tensor, number: int) -> Tensor:
        """In float32 where x is in half precision, whose sums would be rounded at each rank."""
        wide = x.astype("float32") if x.dtype in (paddle.bfloat16, paddle.float16) else x
        return paddle.to_tensor(self.total(wide.detach().numpy(), number)).astype(x.dtype)
