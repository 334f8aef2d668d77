"""Warm-up, then the inverse square root: the twin of mutants of a schedule."""

from paddle_tfm.protocols import Schedule


class Twin(Schedule):
    def __init__(self, warmup: int = 100):
        self.warmup, self.count = warmup, 0

    def __call__(self, step):
        return 1e-3 * min(step / self.warmup, (self.warmup / step) ** 0.5)
