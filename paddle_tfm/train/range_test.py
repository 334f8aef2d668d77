"""The learning-rate range test: one short training with a rising rate shows at which rates a model can be trained."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from paddle_tfm.train.trainer import Trainer

SMOOTHING = 0.9  # of the moving average of the loss
MAX_LOSS_RATIO = 1.25  # of the smoothed loss to the first loss; above it the rate is too large, and the test ends


class Point(NamedTuple):
    """A step of the test: its learning rate, and the smoothed loss in nats per token."""

    rate: float
    loss: float


def range_test(trainer: Trainer, lowest: float, highest: float, steps: int) -> Iterator[Point]:
    """Train the run's model from its initial values, while the rate rises from `lowest` to `highest` by the same factor
    at each step. Ends early if the loss diverges. Writes no file.

    Source: Smith 2017, arXiv:1506.01186; the smoothing with its correction is Adam's (arXiv:1412.6980).
    """
    trainer.step.schedule = lambda step: lowest * (highest / lowest) ** ((step - 1) / (steps - 1))
    trainer.calibrate()
    trainer.run.model.train()
    running, first = 0.0, math.inf
    with trainer.sharded_step() as update:
        for step in range(1, steps + 1):
            metrics = update(step, trainer.next_batches())
            if not math.isfinite(metrics.loss + metrics.gradient_norm):
                return
            running = SMOOTHING * running + (1 - SMOOTHING) * metrics.loss
            loss = running / (1 - SMOOTHING**step)
            yield Point(metrics.learning_rate, loss)
            first = loss if step == 1 else first
            if loss > MAX_LOSS_RATIO * first:
                return


def suggestion(points: list[Point]) -> float | None:
    """A tenth of the rate with the lowest loss, a safe peak for a whole training. None if the lowest loss is at an end
    of the test: then the loss never fell, or was still falling, and suggests no rate."""
    lowest = min(points, key=lambda point: point.loss, default=None)
    if lowest is None or lowest in (points[0], points[-1]):
        return None
    return lowest.rate / 10
