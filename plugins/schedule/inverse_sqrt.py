"""Noam's schedule with its peak as an option."""

from __future__ import annotations

from paddle_tfm.language import _
from paddle_tfm.protocols import Schedule
from paddle_tfm.validators import positive


class InverseSqrt(Schedule):
    """Linear warmup to a stated peak, then 1/sqrt(step), arXiv:1706.03762.

    rate(step) = peak · min(step / warmup, sqrt(warmup / step)): `noam` with peak = factor / sqrt(d_model · warmup).
    With a warmup of 1 it is peak / sqrt(step) from the first step on; with 0 it would be 0 at every step.
    """

    def __init__(self, peak: float = 1e-3, warmup: int = 4000):
        positive(peak=peak)
        require_warmup(warmup)
        self.peak, self.warmup = peak, warmup

    def __call__(self, step: int) -> float:
        return self.peak * min(step / self.warmup, (self.warmup / step) ** 0.5)


def require_warmup(warmup: int) -> None:
    """Raises ValueError unless there is one: it scales the whole formula."""
    if warmup < 1:
        raise ValueError(
            _(
                "`warmup` must be positive, as every rate is 0 without, but is {warmup}; 1 decays from the first step "
                "on, and the schedules cosine and wsd take 0"
            ).format(warmup=warmup)
        )
