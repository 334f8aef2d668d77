"""A step whose loss or gradient is no finite number: what is kept of it, and what follows (`train.divergence`).

The update is not made, so that the model still is what it was before the step: with the batches of the step, that is
all that `paddle-tfm replay` needs to see it again.
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
    """Save what `paddle-tfm replay` needs: the model before the step, and its batches."""
    run, where = state.run, origin(state.step, step, batches)
    kept = {"failed_step": step, "sentence": sentence, "origin": where, "batches": facts(batches)}
    tensors = {**state.parts(), "batches": parts(batches)}
    try:
        checkpoint.save(state.folder(FOLDER), run.model, {**asdict(state.progress), **kept}, tensors, state.identity)
    except UserError as error:
        report(str(error))  # a disk that is full must not hide what happened
    report(f"{sentence}; it begins with {where}. `paddle-tfm replay {in_shell(run.folder)}` shows the step")


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


def load_batches(folder: Path, source: int, target: int, max_length: int) -> list[Batch[np.ndarray]]:
    """The batches of a step that was kept.

    Args:
        source, target: sizes of the vocabularies. max_length: of the model.
    Raises:
        UserError: they are missing or broken, or hold ids that no vocabulary has, or longer texts than the model's.
    """
    stored = read_form(folder / manifest.STATE, Diverged)["batches"]
    arrays, path = checkpoint.load_arrays(folder, "batches"), folder / "batches.safetensors"
    expected = {f"{number}.{name}" for number in range(len(stored)) for name in ARRAYS}
    if differing := sorted(expected ^ arrays.keys()):
        what = "it lacks" if differing[0] in expected else "no batch has"
        raise UserError(f"{path}: damaged: {what} {differing[0]}")
    batches = []
    for number, beside in enumerate(stored):
        values: dict[str, Any] = {name: arrays[f"{number}.{name}"] for name in ARRAYS}
        batch: Batch[np.ndarray] = Batch(**values, **beside)
        if sentence := _wrong(batch, source, target, max_length):
            raise UserError(f"{path}: damaged: batch {number}: {sentence}")
        batches.append(batch)
    return batches


def _wrong(batch: Batch[np.ndarray], source: int, target: int, max_length: int) -> str | None:
    """What no batch has, in a sentence."""
    shapes = {"source": batch.source.shape, "target": batch.target_in.shape, "index": batch.index.shape}
    if list(map(len, shapes.values())) != [2, 2, 1] or not all(map(all, shapes.values())):
        return f"its shapes are {shapes}"
    if (longest := max(batch.source.shape[1], batch.target_in.shape[1])) > max_length:
        return f"it has texts of {longest:,} tokens, more than model.max_length={max_length}"
    rows, copied = len(batch.index), target + batch.extra
    alike = {"source": ("source", "source_valid", "copy_ids"), "target": tuple(n for n in ARRAYS if "target" in n)}
    for side, names in alike.items():
        for name in names:
            array = getattr(batch, name)
            if array.shape != shapes[side] or len(array) != rows:
                return f"`{name}` has shape {array.shape}"
            if array.dtype != (np.bool_ if name.endswith("valid") else np.int64):
                return f"`{name}` holds numbers of the type {array.dtype}"
    if batch.extra > batch.source.size:
        return f"it has {batch.extra} words to copy, and {batch.source.size} in all"
    sizes = {"source": source, "target_in": target, "target_out": target, "copy_ids": copied, "target_copy": copied}
    for name, size in sizes.items():
        ids = getattr(batch, name)
        if ids.min() < 0 or ids.max() >= size:
            return f"`{name}` holds ids outside of 0 to {size - 1}"
    return None
