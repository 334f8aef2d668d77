"""The side channel of a pass: auxiliary losses, and activations that are recorded on request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from paddle import Tensor


@dataclass(frozen=True)
class Tap:
    """Side channel of a pass for auxiliary losses and recorded activations: what is not the output."""

    recording: bool = False
    scope: str = ""
    recorded: list[tuple[str, Tensor]] = field(default_factory=list)
    aux_losses: dict[str, Tensor] = field(default_factory=dict)
    only: frozenset[str] | None = None  # the full names that are recorded; None: all

    def within(self, scope: str) -> Tap:
        """The same tap for a part of the model: what that records is named ``scope.name``."""
        return replace(self, scope=f"{self.scope}.{scope}" if self.scope else scope) if self.recording else self

    def record(self, name: str, value: Tensor) -> None:
        """Record a tensor (attention weights, statistics); nothing is stored unless `recording`."""
        if not self.recording:
            return
        full_name = f"{self.scope}.{name}"
        if self.only is None or full_name in self.only:
            self.recorded.append((full_name, value))

    def add_aux_loss(self, name: str, value: Tensor) -> None:
        """Add an auxiliary loss, a scalar already weighted, to the training loss (mixture-of-experts balance). It is
        one of the whole batch: sums over its rows go through `paddle_tfm.ranks.sum_over_ranks`."""
        self.aux_losses[name] = self.aux_losses[name] + value if name in self.aux_losses else value

    @contextmanager
    def of_this_pass(self) -> Iterator[None]:
        """Within this block, a component that is not given the tap (a norm) adds its auxiliary losses to this one."""
        token = _of_this_pass.set(self)
        try:
            yield
        finally:
            _of_this_pass.reset(token)


_of_this_pass: ContextVar[Tap | None] = ContextVar("paddle_tfm_tap", default=None)


def current_tap() -> Tap | None:
    """The tap of the pass under way, or None outside of one (a layer used on its own)."""
    return _of_this_pass.get()
