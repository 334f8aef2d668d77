"""Warmup, stable, decay."""

from __future__ import annotations

from paddle_tfm.protocols import Schedule
from paddle_tfm.validators import ascending, between, not_negative, positive


class WSD(Schedule):
    """Warmup, stable, decay: a plateau at the peak and a short linear descent at the end, arXiv:2404.06395.

    rate(step) = min(peak · step / warmup, peak, floor + (peak - floor) · (steps + 1 - step) / (D + 1)), where D is the
    fraction `decay` of `steps`: the floor would be reached one step after the run, so that the last step still learns.
    The paper finds a tenth of the steps to do (section 4.3).
    """

    def __init__(self, steps: int, peak: float = 1e-3, warmup: int = 0, decay: float = 0.1, floor: float = 0.0):
        positive(steps=steps, peak=peak)
        not_negative(warmup=warmup, floor=floor)
        ascending(floor=floor, peak=peak)
        between("[0, 1]", decay=decay)
        self.steps, self.peak, self.warmup, self.floor = steps, peak, warmup, floor
        self.decay_steps = round(decay * steps)

    def __call__(self, step: int) -> float:
        remaining = max(0, self.steps + 1 - step) / (self.decay_steps + 1)
        warmup = self.peak * step / self.warmup if step < self.warmup else self.peak
        return min(warmup, self.peak, self.floor + (self.peak - self.floor) * remaining)
