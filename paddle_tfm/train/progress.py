"""The progress of a training: what a checkpoint stores besides the arrays of the model and the optimizer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from paddle_tfm.errors import UserError
from paddle_tfm.train.forms import Amount, Caveats, Count, Score, damaged

LATER = {"later": True}  # of a field that older checkpoints lack


@dataclass
class Progress:
    """Saved with every checkpoint, under these names.

    Args:
        step: optimizer steps so far. epoch, position: of the stream of batches. tokens: real target tokens so far.
        seconds: time of the optimizer steps; `wall_seconds` of everything.
        best: the rank of the best evaluation, `valid` its metrics, `caveats` what must stand beside them, `best_step`
            its step; `stale` counts those since.
        evaluated: whether the evaluation at `step`, if there is one, is done.
        snapshots: the steps whose weights are stored in checkpoints to be averaged.
        skipped: how many steps were left out because loss or gradient was no number; `skipped_in_row` since the last
            that was made; rate_factor: of the learning rate since then (`train.divergence`).
    """

    step: Count = 0
    epoch: Count = 0
    position: Count = 0
    tokens: Count = 0
    seconds: Amount = 0.0
    wall_seconds: Amount = 0.0
    best: list[float] | None = None
    best_step: Count = 0
    valid: dict[str, Score] = field(default_factory=dict)
    evaluated: bool = True
    stale: Count = 0
    snapshots: list[Count] = field(default_factory=list)
    skipped: Count = field(default=0, metadata=LATER)
    skipped_in_row: Count = field(default=0, metadata=LATER)
    caveats: Caveats = field(default_factory=dict, metadata=LATER)
    rate_factor: Annotated[float, Field(gt=0, le=1)] = field(default=1.0, metadata=LATER)

    @classmethod
    def required(cls) -> list[str]:
        """The names that every checkpoint has."""
        return [field.name for field in fields(cls) if not field.metadata]

    @classmethod
    def restored(cls, state: Mapping[str, Any], file: Path, steps: int) -> Progress:
        """The progress in a checkpoint's state, of a training of so many steps.

        Raises:
            UserError: `file`, which it was read from, is damaged.
        """
        try:
            known = {field.name: state[field.name] for field in fields(cls) if field.name in state}
            progress = TypeAdapter(cls).validate_json(json.dumps(known), strict=True)
        except ValidationError as error:
            raise damaged(file, error) from error
        if progress.step > steps:
            raise UserError(f"{file}: damaged: it is of step {progress.step:,}, but the training has {steps:,}")
        return progress

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
