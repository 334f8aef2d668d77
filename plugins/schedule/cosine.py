"""Cosine decay from the peak to the floor."""

from __future__ import annotations

import math

from paddle_tfm.protocols import Schedule
from paddle_tfm.validators import ascending, not_negative, positive


class Cosine(Schedule):
    """Linear warmup, then half a cosine down to a floor at the end of the run, arXiv:1608.03983.

    rate(step) = peak · step / warmup up to `warmup`; then floor + (peak - floor) · (1 + cos(pi · progress)) / 2, where
    `progress` is 0 at the peak (step max(warmup, 1)) and 1 one step after the run, so that the last step still learns.
    A run that is shorter than `warmup` ends while it warms up.
    """

    def __init__(self, steps: int, peak: float = 1e-3, warmup: int = 0, floor: float = 0.0):
        positive(steps=steps, peak=peak)
        not_negative(warmup=warmup, floor=floor)
        ascending(floor=floor, peak=peak)
        self.steps, self.peak, self.warmup, self.floor = steps, peak, warmup, floor

    def __call__(self, step: int) -> float:
        if step < self.warmup:
            return self.peak * step / self.warmup
        top = max(self.warmup, 1)
        progress = min(1.0, (step - top) / max(self.steps + 1 - top, 1))
        return self.floor + (self.peak - self.floor) * (1 + math.cos(math.pi * progress)) / 2
