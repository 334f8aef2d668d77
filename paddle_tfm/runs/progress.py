"""How far a training is: `state.json` of each of its checkpoints. Needs no Paddle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddle_tfm.runs.forms import Amount, Caveats, Count, Form


class Progress(Form):
    """Saved with every checkpoint, under these names.

    Args:
        step: optimizer steps so far. epoch, position: of the stream of batches. tokens: real target tokens so far.
        seconds: time of the optimizer steps; `wall_seconds` of everything.
        best: the rank of the best evaluation, `valid` its metrics, `caveats` what must stand beside them, `best_step`
            its step; `stale` counts those since.
        evaluated: whether the evaluation at `step`, if there is one, is done.
        snapshots: the steps whose weights are stored in checkpoints to be averaged.
    """

    step: Count = 0
    epoch: Count = 0
    position: Count = 0
    tokens: Count = 0
    seconds: Amount = 0.0
    wall_seconds: Amount = 0.0
    best: list[float] | None = None
    best_step: Count = 0
    valid: dict[str, float] = {}
    evaluated: bool = True
    stale: Count = 0
    snapshots: list[Count] = []
    caveats: Caveats = {}

    def improved(self, rank: list[float], metrics: Mapping[str, float], caveats: Mapping[str, Any]) -> bool:
        """Whether an evaluation is the best so far, by its rank; if so, `best`, `valid` and `caveats` are of it now."""
        better = self.best is None or rank > self.best
        if better:
            self.best, self.valid, self.caveats = rank, dict(metrics), dict(caveats)
        return better

    @property
    def tokens_per_second(self) -> float:
        """Real target tokens per second of training; 0 before the first step."""
        return self.tokens / self.seconds if self.seconds else 0.0
