"""Functions that are called when a layer is: Paddle's type hints know only hooks that return a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paddle import nn


def before_forward(layer: nn.Layer, callback: Callable[[nn.Layer, tuple], None]) -> None:
    """Call `callback(layer, inputs)` before each forward pass of a layer; the inputs stay."""

    def hook(layer: nn.Layer, inputs: Any) -> Any:
        callback(layer, inputs)
        return inputs

    layer.register_forward_pre_hook(hook)


def after_forward(layer: nn.Layer, callback: Callable[[nn.Layer, tuple, Any], None]) -> None:
    """Call `callback(layer, inputs, output)` after each forward pass of a layer; the output stays."""

    def hook(layer: nn.Layer, inputs: Any, output: Any) -> Any:
        callback(layer, inputs, output)
        return output

    layer.register_forward_post_hook(hook)
