"""A component that is a layer of the model."""

from __future__ import annotations

from typing import Any

from paddle_tfm import kernels
from paddle_tfm.layers import Layer
from paddle_tfm.options import options_of
from paddle_tfm.protocols.component import Component


class LayerComponent(Component, Layer):
    """A component that is a layer: `forward` is its formula. Called within the engine's step or search, it is computed
    by the kernel of exactly its class, where there is one that fits (`protocols.Kernel`)."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            return super().__call__(*args, **kwargs)
        return kernels.call(self, args, super().__call__)

    def extra_repr(self) -> str:
        """The options that it keeps under their names."""
        kept = {name: getattr(self, name, None) for name in options_of(type(self))}
        return ", ".join(f"{name}={value}" for name, value in kept.items() if isinstance(value, (int, float, str)))
