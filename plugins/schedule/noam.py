"""The learning-rate schedule of the first Transformer."""

from __future__ import annotations

from paddle_tfm.protocols import Schedule
from paddle_tfm.validators import positive
from paddle_tfm_plugins.schedule.inverse_sqrt import require_warmup


class Noam(Schedule):
    """Linear warmup, then 1/sqrt(step), scaled by the width of the model, arXiv:1706.03762.

    rate(step) = factor · d_model^-0.5 · min(step^-0.5, step · warmup^-1.5). The highest rate, at step = `warmup`, is
    factor / sqrt(d_model · warmup).
    """

    def __init__(self, d_model: int, factor: float = 1.0, warmup: int = 4000):
        positive(d_model=d_model, factor=factor)
        require_warmup(warmup)
        self.scale = factor * d_model**-0.5
        self.warmup = warmup

    def __call__(self, step: int) -> float:
        return self.scale * min(step**-0.5, step * self.warmup**-1.5)
