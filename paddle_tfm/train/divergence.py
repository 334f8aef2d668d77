"""A step whose loss or gradient is no finite number: what is kept of it, and what follows (`train.divergence`).

The update is not made, so that the model still is what it was before the step: with the batches of the step, that is
all that `paddle-tfm check RUN` needs to do it again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.data.batches import Batch
from paddle_tfm.errors import UserError
from paddle_tfm.train import checkpoint, manifest
from paddle_tfm.train.forms import Diverged, read_form
from paddle_tfm.train.origin import origin
from paddle_tfm.train.state import TrainingState
from paddle_tfm.units import in_shell

FOLDER = "diverged"  # among a run's checkpoints
MOST = 10  # steps in a row that are skipped before the training ends
BACK_OFF = 0.5  # of the learning rate, at each step that is skipped
ARRAYS = [field.name for field in fields(Batch) if field.name not in ("extra", "tokens")]
Batches = Sequence[Batch[np.ndarray]]


def not_finite(metrics: Mapping[str, Any], step: int) -> str | None:
    """A sentence if the loss or the gradient's norm is NaN or infinite."""
    for name in ("loss", "gradient_norm"):
        if not math.isfinite(metrics[name]):
            return f"the {name.replace('_', ' ')} was no number at step {step} ({metrics[name]})"
    return None


def not_made(
    state: TrainingState, step: int, batches: Batches, sentence: str, report: Callable[[str], None]
) -> str | None:
    """Keep the first step that could not be made, and do with it as the recipe says. Returns a sentence if the training
    ends.

    Args:
        state: as before the step, but for the stream. sentence: what was no number. report: gets a sentence on a step
            that is kept.
    """
    progress, policy = state.progress, state.run.settings.train.divergence
    if not state.folder(FOLDER).exists():
        _keep(state, step, batches, sentence, report)
    if policy == "stop":
        return sentence
    progress.skipped_in_row += 1
    if progress.skipped_in_row == MOST:  # not left out: the training ends with it
        return f"{sentence}, as at each of the {MOST - 1} steps before it"
    progress.skipped += 1
    if policy == "back_off":
        progress.rate_factor *= BACK_OFF
    state.count(step, {"skipped": sentence}, 0.0)
    return None


def _keep(state: TrainingState, step: int, batches: Batches, sentence: str, report: Callable[[str], None]) -> None:
    """Save what `paddle-tfm check RUN` needs: the model before the step, and its batches."""
    run, where = state.run, origin(state.step, step, batches)
    kept = {"failed_step": step, "sentence": sentence, "origin": where, "batches": facts(batches)}
    tensors = {**state.parts(), "batches": parts(batches)}
    try:
        checkpoint.save(state.folder(FOLDER), run.model, {**asdict(state.progress), **kept}, tensors, state.identity)
    except UserError as error:
        report(str(error))  # a disk that is full must not hide what happened
    report(f"{sentence}; it begins with {where}. `paddle-tfm check {in_shell(run.folder)}` shows the step")


def parts(batches: Batches) -> dict[str, Tensor]:
    """The arrays of batches, by number and name, for a checkpoint."""
    return {
        f"{number}.{name}": paddle.to_tensor(getattr(batch, name))
        for number, batch in enumerate(batches)
        for name in ARRAYS
    }


def facts(batches: Batches) -> list[dict[str, int]]:
    """What batches have beside their arrays."""
    return [{"extra": int(batch.extra), "tokens": int(batch.tokens)} for batch in batches]


def load_batches(folder: Path) -> list[Batch[np.ndarray]]:
    """The batches of a step that was kept.

    Raises:
        UserError: they are missing or broken.
    """
    stored = read_form(folder / manifest.STATE, Diverged)["batches"]
    arrays = checkpoint.load_arrays(folder, "batches")
    batches = []
    for number, beside in enumerate(stored):
        values: dict[str, Any] = {name: arrays[f"{number}.{name}"] for name in ARRAYS}
        batches.append(Batch(**values, **beside))
    return batches
