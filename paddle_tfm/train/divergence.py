"""A step whose loss or gradient is no finite number: what is kept of it, and where it comes from.

The update is not made, so that the model still is what it was before the step: with the batches of the step, that is
all that `paddle-tfm replay` needs to see it again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle import Tensor

from paddle_tfm.data.batches import Batch
from paddle_tfm.train import checkpoint
from paddle_tfm.train.step import Step

FOLDER = "diverged"  # among a run's checkpoints
MOST = 10  # steps in a row that are skipped before the training ends
BACK_OFF = 0.5  # of the learning rate, at each step that is skipped
ARRAYS = [field.name for field in fields(Batch) if field.name not in ("extra", "tokens")]


def not_finite(metrics: Mapping[str, Any], step: int) -> str | None:
    """A sentence if the loss or the gradient's norm is NaN or infinite."""
    for name in ("loss", "gradient_norm"):
        if not math.isfinite(metrics[name]):
            return f"the {name.replace('_', ' ')} was no number at step {step} ({metrics[name]})"
    return None


@contextmanager
def undone(model: paddle.nn.Layer) -> Iterator[None]:
    """After this block the buffers of a model, running statistics for instance, are what they were before."""
    restore = remembered(model)
    try:
        yield
    finally:
        restore()


def remembered(model: paddle.nn.Layer):
    """A function that sets the buffers of a model to what they are now."""
    copies = [(buffer, buffer.clone()) for buffer in model.buffers()]

    def restore() -> None:
        for buffer, copy in copies:
            paddle.assign(copy, output=buffer)

    return restore


@dataclass(frozen=True)
class Output:
    """What a layer computed in one pass: `largest`: of the absolute values that are finite; `wrong`: how many of `size`
    are not; `from_finite`: whether all that came in was."""

    path: str
    kind: str
    largest: float
    wrong: int
    size: int
    from_finite: bool

    def __str__(self) -> str:
        came = "" if self.from_finite else ", and so were some of its inputs"
        return f"the output of {self.path} ({self.kind}): {self.wrong:,} of {self.size:,} numbers are not finite{came}"


def outputs(step: Step, number: int, batches: Sequence[Batch[np.ndarray]]) -> list[Output]:
    """What every layer computes in step `number`, in the order in which they end; the gradients are the parameters'
    afterwards. Nothing is updated. A layer of which only other methods than `forward` are called is not seen."""
    seen: list[Output] = []

    def listen(path: str):
        def hook(layer, inputs, output) -> None:
            arrays = list(_arrays(output))
            wrong = sum(_wrong(array, path) for array in arrays)
            finite = all(not _wrong(array, path) for array in _arrays(inputs))
            seen.append(
                Output(path, type(layer).__name__, _largest(arrays), wrong, sum(a.size for a in arrays), finite)
            )

        return hook

    for parameter in step.parameters:
        parameter.clear_gradient(set_to_zero=False)
    hooks = [layer.register_forward_post_hook(listen(path)) for path, layer in step.model.named_sublayers()]
    try:
        with undone(step.model), np.errstate(invalid="ignore", over="ignore"):
            Step.backward(step, number, batches)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def origin(step: Step, number: int, batches: Sequence[Batch[np.ndarray]]) -> str:
    """The first thing in step `number` that is not finite: a parameter, the output of a layer, or a gradient."""
    for path, parameter in step.model.named_parameters():
        if wrong := _wrong(parameter.numpy()):
            return f"the parameter {path}: {wrong:,} numbers were not finite before the step; an update made them so"
    first = next((output for output in outputs(step, number, batches) if output.wrong), None)
    if first is not None:
        return str(first)
    gradients = [
        path
        for path, parameter in step.model.named_parameters()
        if parameter.grad is not None and _wrong(parameter.grad.numpy())
    ]
    if gradients:  # they come from the loss backwards
        more = f", and of {len(gradients) - 1} parameters before it" if len(gradients) > 1 else ""
        return f"the gradient of {gradients[-1]}{more}; the outputs of all layers were finite"
    return "the loss or the gradient's norm itself; the outputs of all layers, and all gradients, were finite"


def _arrays(value: object) -> Iterator[np.ndarray]:
    if isinstance(value, Tensor):
        if value.is_floating_point():
            yield value.detach().astype("float32").numpy()
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _arrays(item)


def _wrong(array: np.ndarray, path: str = "") -> int:
    """How many numbers are not finite; of a head −∞ is the logarithm of 0, which it may say of a word."""
    if path.partition(".")[0] == "head":
        return int(np.isnan(array).sum() + np.isposinf(array).sum())
    return int(array.size - np.isfinite(array).sum())


def _largest(arrays: Sequence[np.ndarray]) -> float:
    return max((float(np.abs(a[np.isfinite(a)]).max(initial=0.0)) for a in arrays), default=0.0)


# --------------------------------------------------------------------------------------------------------- what is kept


def parts(batches: Sequence[Batch[np.ndarray]]) -> dict[str, Tensor]:
    """The arrays of batches, by number and name, for a checkpoint."""
    return {
        f"{number}.{name}": paddle.to_tensor(getattr(batch, name))
        for number, batch in enumerate(batches)
        for name in ARRAYS
    }


def facts(batches: Sequence[Batch[np.ndarray]]) -> list[dict[str, int]]:
    """What batches have beside their arrays."""
    return [{"extra": int(batch.extra), "tokens": int(batch.tokens)} for batch in batches]


def load_batches(folder: Path) -> list[Batch[np.ndarray]]:
    """The batches of a step that was kept.

    Raises:
        UserError: they are missing or broken.
    """
    stored = checkpoint.load_state(folder, ("step", "batches"))["batches"]
    arrays = checkpoint.load_arrays(folder, "batches")
    batches = []
    for number, beside in enumerate(stored):
        values: dict[str, Any] = {name: arrays[f"{number}.{name}"] for name in ARRAYS}
        batches.append(Batch(**values, **beside))
    return batches
