"""Kernels: faster ways to compute what a formula says. Which are in use, and one call of a layer or an op.

A layer is called (`protocols.LayerComponent`), or an op (`paddle_tfm.ops`). Within `using` the table is asked for a
kernel of exactly that class or op; where one `fits` the call, it computes it. Everywhere else, the formula does. The
engine's step and its search are within `using`; whoever calls a layer by himself gets the formula.

`function` is for kernels with a backward of their own; `cpu` calls the libraries in Paddle's wheel.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from paddle import nn

from paddle_tfm import paddle_compat

Function = TypeVar("Function", bound=Callable[..., Any])
Examples = TypeVar("Examples", bound=Callable[[np.random.Generator], tuple[Any, ...]])
Products = Literal["float32", "bfloat16"] | None


@dataclass(frozen=True)
class Mode:
    """What the engine does, for kernels to choose by.

    Args:
        phase: "step": a graph is made, and walked back once; "search": no gradients, and no weight changes.
        products: what the products of a step are computed in (`train.products`); None: by Paddle.
    """

    phase: Literal["step", "search"]
    products: Products = None


class Dropping(Protocol):
    """What `Call.draw` draws for: a `layers.Dropout`."""

    training: bool
    rate: float
    factor: float

    def draw(self, count: int) -> Callable[[int, int], np.ndarray]:
        """(first, number) → which of so many elements survive."""


@dataclass(frozen=True)
class Call:
    """One call: of a layer with `args`, or of an op (`layer` None), whose defaults are filled in.

    `cache` is a dict that lives as long as the block of `using`, for what is computed from weights or inputs once: of
    each layer its own, of all ops one.
    """

    layer: Any
    args: tuple[Any, ...]
    mode: Mode
    cache: dict[Any, Any]

    def plain(self, cls: type, *layers: nn.Layer) -> bool:
        """Whether each of `layers` is exactly a `cls`, and nobody asked to be called before or after one, so that a
        kernel may use their parameters without calling them."""
        return all(type(layer) is cls for layer in layers) and paddle_compat.called_plainly(*layers)

    def draw(self, dropout: Dropping, count: int) -> Callable[[int, int], np.ndarray] | None:
        """The formula's draws for `count` elements: (first, number) → which survive; None: nothing is dropped."""
        return dropout.draw(count) if dropout.training and dropout.rate > 0.0 else None


class AnyKernel(Protocol):
    """What this room needs of a kernel; the contract is `protocols.Kernel`."""

    def fits(self, call: Call) -> bool:
        """Whether it computes this call."""

    def run(self, call: Call) -> Any:
        """What the formula gives."""


@dataclass(frozen=True)
class _Use:
    mode: Mode
    kernels: Mapping[Any, AnyKernel]
    cache: dict[Any, Any] = field(default_factory=dict)


_in_use: ContextVar[_Use | None] = ContextVar("kernels in use", default=None)


@contextmanager
def using(mode: Mode, kernels: Mapping[Any, AnyKernel]) -> Iterator[None]:
    """Within this block `kernels` compute the classes and ops that they are of, where they fit."""
    token = _in_use.set(_Use(mode, kernels))
    try:
        yield
    finally:
        _in_use.reset(token)


def call(layer: nn.Layer, args: tuple[Any, ...], formula: Callable[..., Any]) -> Any:
    """`formula(*args)`, computed by the kernel of the layer's class, where one fits and nobody listens to the layer."""
    return _computed(type(layer), layer, args, formula)


def op(formula: Function) -> Function:
    """A decorator: a function of tensors that a kernel may compute. `formula` is its attribute."""
    signature = inspect.signature(formula)
    defaults = [parameter.default for parameter in signature.parameters.values()]

    @wraps(formula)
    def dispatched(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            args = signature.bind(*args, **kwargs).args
        return _computed(dispatched, None, (*args, *defaults[len(args) :]), formula)

    dispatched.formula = formula  # type: ignore[attr-defined]
    return dispatched  # type: ignore[return-value]


def _computed(of: Any, layer: nn.Layer | None, args: tuple[Any, ...], formula: Callable[..., Any]) -> Any:
    """`formula(*args)`, by the kernel of the class or op `of`, where one fits."""
    use = _in_use.get()
    kernel = None if use is None else use.kernels.get(of)
    if use is not None and kernel is not None and (layer is None or paddle_compat.called_plainly(layer)):
        cache = use.cache if layer is None else use.cache.setdefault(id(layer), {})
        this = Call(layer, args, use.mode, cache)
        if kernel.fits(this):
            return kernel.run(this)
    return formula(*args)


def examples(of: Callable[..., Any]) -> Callable[[Examples], Examples]:
    """A decorator: a function of a NumPy generator that returns random arguments of the op `of`, as different as those
    that may come; a generator in the same state gives the same. The conformance kit compares kernels of the op with
    its formula on them."""

    def decorate(function: Examples) -> Examples:
        vars(of)["examples"] = function
        return function

    return decorate
