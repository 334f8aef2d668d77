"""Sums over the rows of a batch that other processes have: for components that compute something of a whole batch.

A run that several processes train (`paddle-tfm run --nproc`) gives each of them, a rank, some rows of every batch. What
is computed token by token needs to know nothing of it. A statistic of the whole batch is a function of sums, and is
right with any number of processes if these go through `sum_over_ranks`:

    count = sum_over_ranks(real.sum())
    mean = sum_over_ranks((x * real).sum(0)) / count

Each sum waits for all ranks, so few are better than small ones: a mean and its variance need one, `moments_over_ranks`.
An auxiliary loss that is made of such sums has the value of the whole batch in every process, as it should.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import paddle
from numpy.typing import NDArray
from paddle import Tensor

from paddle_tfm.kernels import function as fused

Array = NDArray[np.float64]
Total = Callable[[Array, int], Array]
"""The sum over all ranks of an array, which each calls with the same number, by which a wrong order is noticed."""


class _Pass:
    """One pass that is divided among ranks: how they sum, the sums so far, the output of the function before, and what
    a sum raised."""

    def __init__(self, total: Total):
        self.total, self.sums = total, 0
        self.last: Tensor | None = None
        self.error: BaseException | None = None

    def sum(self, x: Array) -> Array:
        self.sums += 1
        try:
            return self.total(x, self.sums)
        except BaseException as error:
            self.error = error  # where it comes out of a backward pass, Paddle has made it another
            raise

    def apply(self, function: _InOrder, x: Tensor) -> Tensor:
        """The function takes the output of the one before it as an input that it ignores. So their backward passes
        come in the reverse order, in every rank, whatever else is in its graph: an expert that none of its tokens chose
        is in no graph."""
        inputs = [x] if self.last is None or x.stop_gradient else [x, self.last]
        out = fused.apply(function, *inputs)
        if not out.stop_gradient:
            self.last = out
        return out


_pass: _Pass | None = None


@contextmanager
def divided(total: Total) -> Iterator[None]:
    """Within this block a pass, forward and backward, is one of several ranks'. It raises what `total` raised."""
    global _pass
    before, _pass = _pass, _Pass(total)
    current = _pass
    try:
        yield
    except Exception:
        if current.error is not None:
            raise current.error from None
        raise
    finally:
        _pass = before


def sum_over_ranks(x: Tensor) -> Tensor:
    """Σ over ranks of x, of any shape, the same in each; its gradient is the sum over ranks of the output's. Where one
    process computes the whole batch, x itself.

    To be called in `forward`, or in a function of `on_gradient`, and equally often and with one shape by every rank.
    """
    return x if _pass is None else _pass.apply(_Sum(_pass), x)


def several() -> bool:
    """Whether other processes have rows of the batch too."""
    return _pass is not None


def moments_over_ranks(count: Tensor, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Count n, a scalar, mean μ and variance σ² [..., C] of the whole batch, from those of this rank's rows:

        n = Σ n_r,  μ = Σ n_r μ_r / n,  σ² = Σ n_r (σ_r² + μ_r²) / n − μ²

    It takes one sum each way, of float64, in which that difference keeps its digits. A variance is the mean of squares
    about the mean beside it. Where n = 0, mean and variance are 0. Where one process computes the whole batch, its
    arguments.
    """
    if _pass is None:
        return count, mean, variance
    moments = _Moments(_pass, count)
    mean, variance = _pass.apply(moments, paddle.stack([mean, variance])).unbind()
    return paddle.full_like(count, moments.total), mean, variance


def on_gradient(x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """x, whose gradient goes through `function` on its way back, as by `x.register_hook`; but `function` may call
    `sum_over_ranks`, which in a hook would come in another order in every rank."""
    if _pass is not None:
        return _pass.apply(_OnGradient(function), x)
    x.register_hook(function)
    return x


class _InOrder(fused.Function):
    """A function of its first input, whose backward pass comes before that of the function that made the second."""

    def of(self, x: Tensor) -> Tensor:
        """The output."""
        raise NotImplementedError

    def gradient(self, gradient: Tensor) -> Tensor:
        """The gradient of the first input."""
        raise NotImplementedError

    def forward(self, *inputs: Tensor) -> Tensor:
        self.ignored = [(each.shape, each.dtype) for each in inputs[1:]]
        return self.of(inputs[0])

    def backward(self, gradient: Tensor) -> list[Tensor | None]:
        nothing: list[Tensor | None] = [paddle.zeros(*each) for each in self.ignored]
        return [self.gradient(gradient), *nothing]


class _Sum(_InOrder):
    """The sum over ranks, forward and backward."""

    def __init__(self, of_pass: _Pass):
        self.of_pass = of_pass

    def of(self, x: Tensor) -> Tensor:
        return paddle.to_tensor(self.of_pass.sum(_array(x))).astype(x.dtype)

    def gradient(self, gradient: Tensor) -> Tensor:
        return self.of(gradient)


class _Moments(_InOrder):
    """Mean and variance [2, ..., C] of this rank's rows → of all ranks'."""

    def __init__(self, of_pass: _Pass, count: Tensor):
        self.of_pass, self.count = of_pass, _array(count)

    def of(self, x: Tensor) -> Tensor:
        mean, variance = own = _array(x)
        sums = np.concatenate([[1.0], mean.ravel(), (variance + mean * mean).ravel()]) * self.count
        sums = self.of_pass.sum(sums)
        self.total = float(sums[0])
        whole, squares = sums[1:].reshape(own.shape) / max(self.total, 1.0)
        self.share, self.away = self.count / max(self.total, 1.0), mean - whole
        return paddle.to_tensor(np.stack([whole, squares - whole * whole])).astype(x.dtype)

    def gradient(self, gradient: Tensor) -> Tensor:
        """∂μ/∂μ_r = ∂σ²/∂σ_r² = n_r / n, and ∂σ²/∂μ_r = 2 (μ_r − μ) n_r / n."""
        of_mean, of_variance = self.of_pass.sum(_array(gradient))
        own = np.stack([of_mean + 2.0 * self.away * of_variance, of_variance]) * self.share
        return paddle.to_tensor(own).astype(gradient.dtype)


class _OnGradient(_InOrder):
    """x, and a function of its gradient."""

    def __init__(self, function: Callable[[Tensor], Tensor]):
        self.function = function

    def of(self, x: Tensor) -> Tensor:
        return x.clone()

    def gradient(self, gradient: Tensor) -> Tensor:
        return self.function(gradient)


def _array(x: Tensor) -> Array:
    return x.detach().astype("float64").numpy()
