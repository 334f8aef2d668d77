"""Noam's schedule with its peak as an option."""

from __future__ import annotations

from paddle_tfm.protocols import Schedule
from paddle_tfm.validators import positive


class InverseSqrt(Schedule):
    """Linear warmup to a stated peak, then 1/sqrt(step), arXiv:1706.03762.

    rate(step) = peak · min(step / warmup, sqrt(warmup / step)): `noam` with peak = factor / sqrt(d_model · warmup).
    """

    def __init__(self, peak: float = 1e-3, warmup: int = 4000):
        positive(peak=peak, warmup=warmup)
        self.peak, self.warmup = peak, warmup

    def __call__(self, step: int) -> float:
        return self.peak * min(step / self.warmup, (self.warmup / step) ** 0.5)
