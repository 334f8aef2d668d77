"""What Paddle's layers keep in private tables: attributes, calls and constructors without the ways around."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

from paddle import nn

from paddle_tfm import memory

_INSIDE = "_has_direct_attributes"  # of a model, within `direct_attributes`
_DIRECT = "_calls_forward"  # of a layer there that nobody asked to be called before or after: what it keeps


@contextmanager
def direct_attributes(*models: nn.Layer) -> Iterator[None]:
    """Within this block every layer of these has its parameters and sublayers as ordinary attributes too.

    Paddle finds them in `Layer.__getattr__`, which Python calls when the ordinary look-up has failed: 0.8 microseconds
    instead of 0.06, of which one decoded token takes two hundred. They are the same objects, and what is assigned
    within the block takes their place, for Paddle's `Layer.__setattr__` deletes an ordinary attribute of that name.
    Without Paddle's private tables nothing is added.

    No weight may change its numbers within the block: a layer may keep what it computed from them (`kept`).
    """
    added: list[tuple[dict[str, Any], str]] = []
    for model in models:
        if _INSIDE not in model.__dict__:  # a block within this one adds nothing
            model.__dict__[_INSIDE] = True
            added.append((model.__dict__, _INSIDE))
            _add_direct_attributes(model, added)
    try:
        yield
    finally:
        for attributes, name in added:
            attributes.pop(name, None)


def _add_direct_attributes(layer: nn.Layer, added: list[tuple[dict[str, Any], str]]) -> None:
    """Those of `layer` and all below it, and in `added` where each was put."""
    cls: type = type(layer)  # as a plain `type`: what mypy takes for hashable
    attributes, of_class = layer.__dict__, _names_of_class(cls)
    if not (attributes.get("_forward_pre_hooks", True) or attributes.get("_forward_post_hooks", True)):
        attributes[_DIRECT] = {}
        added.append((attributes, _DIRECT))
    layers = attributes.get("_sub_layers") or {}
    for table in (attributes.get("_parameters") or {}, layers):
        for name, member in table.items():
            if member is not None and name not in attributes and name not in of_class:
                attributes[name] = member
                added.append((attributes, name))
    for member in layers.values():
        if member is not None:
            _add_direct_attributes(member, added)


@lru_cache(maxsize=1024)
def _names_of_class(cls: Hashable) -> frozenset[str]:
    return frozenset(dir(cls))


def kept(layer: nn.Layer) -> dict[str, Any] | None:
    """What `layer` keeps until the end of the block of `direct_attributes`; None outside of one."""
    return layer.__dict__.get(_DIRECT)


def called_plainly(*layers: nn.Layer) -> bool:
    """Whether nobody asked to be called before or after one of these layers, so that their parameters may be used
    without calling them. Without Paddle's private tables of such hooks: no."""
    tables = ("_forward_pre_hooks", "_forward_post_hooks")
    return not any(layer.__dict__.get(table, True) for layer in layers for table in tables)


class _Unfilled(nn.Layer):
    """The class of a layer while Paddle's constructor fills its tables: attributes are ordinary ones."""

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


class Layer(nn.Layer):
    """An `nn.Layer` that within `direct_attributes` calls `forward` itself, if nobody asked to be called before or
    after it: Paddle's own call first asks for modes of tracing and profiling, in half of its time. Without Paddle's
    private tables of such hooks, Paddle's call is made.

    Paddle's constructor sets twenty attributes, and for each `Layer.__setattr__` asks whether it is a parameter, a
    sublayer or a buffer: a third of the time in which a small model is built. None of them is, so none is asked.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        constructor, cls = super().__init__, type(self)
        if getattr(constructor, "__func__", None) is nn.Layer.__init__:  # another base class may set anything
            if not args:
                kwargs.setdefault("name_scope", cls.__name__.lower())
            with suppress(TypeError):  # instances of this class may be laid out otherwise, as with a base class `dict`
                object.__setattr__(self, "__class__", _Unfilled)
        try:
            constructor(*args, **kwargs)
        finally:
            object.__setattr__(self, "__class__", cls)

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        if _DIRECT in self.__dict__:
            return self.forward(*inputs, **kwargs)
        return super().__call__(*inputs, **kwargs)

    def create_parameter(self, shape: Any, *args: Any, **kwargs: Any) -> Any:
        """A parameter. Raises MemoryError where the memory that is free does not hold it."""
        memory.require(4 * math.prod(shape), f"a parameter of shape {list(shape)}")
        return super().create_parameter(shape, *args, **kwargs)

    def register_forward_pre_hook(self, *args: Any, **kwargs: Any) -> Any:
        self.__dict__.pop(_DIRECT, None)
        return super().register_forward_pre_hook(*args, **kwargs)

    def register_forward_post_hook(self, *args: Any, **kwargs: Any) -> Any:
        self.__dict__.pop(_DIRECT, None)
        return super().register_forward_post_hook(*args, **kwargs)


class LayerList(nn.LayerList):
    """A `LayerList` whose members are found in a sixth of the time. Without Paddle's private table it is its own."""

    def __getitem__(self, index):
        layers = self.__dict__.get("_sub_layers")
        member = layers.get(str(index)) if layers is not None and type(index) is int else None
        return super().__getitem__(index) if member is None else member
