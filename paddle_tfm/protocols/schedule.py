"""The learning rate as a function of the step."""

from __future__ import annotations

from typing import ClassVar

from paddle_tfm.protocols.component import Component


class Schedule(Component):
    """The learning rate as a function of the step: rate(1), rate(2), …, rate(steps).

    Givens:
        d_model: C. steps: of the whole run.

    Invariances: it keeps no state, so that a resumed run continues with the same rates, which are positive and without
        jumps.

    Example::

        from paddle_tfm.protocols import Schedule
        from paddle_tfm.validators import positive

        class Halving(Schedule):  # rate(step) = peak / 2^(step / every), rounded down
            expected_failures = {"continuous": "it halves at once, every so many steps"}

            def __init__(self, peak: float = 1e-3, every: int = 1000):
                positive(peak=peak, every=every)
                self.peak, self.every = peak, every

            def __call__(self, step):
                return self.peak * 0.5 ** (step // self.every)
    """

    kind: ClassVar[str] = "schedule"
    givens = frozenset({"d_model", "steps"})

    def __call__(self, step: int) -> float:
        """The learning rate of step 1, 2, …"""
        raise NotImplementedError
