"""Averages of weights over a training: the exponential moving average, and the mean of the last checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import paddle

from paddle_tfm.model.transformer import Transformer
from paddle_tfm.train import checkpoint


class MovingAverage:
    """An exponential moving average of all weights (after Polyak & Juditsky 1992).

    shadow ← d · shadow + (1 − d) · weight, with d = min(decay, (1 + step) / (10 + step)), so that the initial values
    soon lose their weight. Buffers are not averaged: `Norm.population` says where running statistics come from.
    """

    def __init__(self, model: Transformer, decay: float):
        self.model, self.decay = model, decay
        self.shadow = {path: parameter.clone().detach() for path, parameter in model.named_parameters()}

    def update(self, step: int) -> None:
        """Update the average after optimizer step `step`."""
        decay = min(self.decay, (1 + step) / (10 + step))
        with paddle.no_grad():
            for path, parameter in self.model.named_parameters():
                self.shadow[path].scale_(decay).add_(parameter * (1.0 - decay))

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Within this block the model holds the averages."""
        trained = {path: parameter.clone().detach() for path, parameter in self.model.named_parameters()}
        self._set(self.shadow)
        try:
            yield
        finally:
            self._set(trained)

    def _set(self, weights: Mapping[str, paddle.Tensor]) -> None:
        for path, parameter in self.model.named_parameters():
            parameter.set_value(weights[path])


def set_mean(model: Transformer, folders: Iterable[Path]) -> None:
    """Set the weights and buffers of `model` to the means of those in checkpoints."""
    checkpoint.set_arrays(model, mean([checkpoint.load_arrays(folder) for folder in folders]))


def mean(states: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The mean of each array, summed in float64."""
    return {
        name: np.asarray(sum(state[name].astype("float64") for state in states) / len(states)).astype(array.dtype)
        for name, array in states[0].items()
    }
