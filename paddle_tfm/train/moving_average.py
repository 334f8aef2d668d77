"""An exponential moving average of the weights: the setting `train.ema`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import paddle
from paddle import Tensor

from paddle_tfm.model.transformer import Transformer


class MovingAverage:
    """An exponential moving average of all weights that are trained (after Polyak & Juditsky 1992).

    shadow ← d · shadow + (1 − d) · weight, with d = min(decay, (1 + step) / (10 + step)), so that the initial values
    soon lose their weight. Buffers are not averaged: `Norm.population` says where running statistics come from.
    """

    def __init__(self, model: Transformer, decay: float):
        self.decay = decay
        named = model.named_parameters()
        self.weights = {path: parameter for path, parameter in named if not parameter.stop_gradient}
        self.shadow = {path: parameter.clone().detach() for path, parameter in self.weights.items()}

    def update(self, step: int) -> None:
        """Update the average after optimizer step `step`."""
        decay = min(self.decay, (1 + step) / (10 + step))
        with paddle.no_grad():
            for path, parameter in self.weights.items():
                self.shadow[path].scale_(decay).add_(parameter * (1.0 - decay))

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Within this block the model holds the averages."""
        trained = {path: parameter.clone().detach() for path, parameter in self.weights.items()}
        self._set(self.shadow)
        try:
            yield
        finally:
            self._set(trained)

    def _set(self, weights: Mapping[str, Tensor]) -> None:
        for path, parameter in self.weights.items():
            parameter.set_value(weights[path])
