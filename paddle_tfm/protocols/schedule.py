"""The learning rate as a function of the step."""

from __future__ import annotations

from typing import ClassVar

from paddle_tfm.protocols.component import Component


class Schedule(Component):
    """The learning rate as a function of the step. Givens: d_model, steps (of the whole run)."""

    kind: ClassVar[str] = "schedule"
    givens = frozenset({"d_model", "steps"})

    def __call__(self, step: int) -> float:
        """The learning rate of step 1, 2, …"""
        raise NotImplementedError
