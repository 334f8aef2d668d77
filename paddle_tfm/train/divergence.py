"""A step whose loss or gradient is no finite number, with which the training ends: what is kept of it, and where the
number comes from.

The update is not made, so that the model still is what it was before the step: with the batches of the step, that is
all that `paddle-tfm check RUN` needs to do it again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle import Tensor
from paddle.nn import Layer

from paddle_tfm.data.batches import Batch, packed, unpacked
from paddle_tfm.errors import UserError
from paddle_tfm.files import read_json
from paddle_tfm.runs import checkpoint, manifest
from paddle_tfm.train.running_statistics import undone
from paddle_tfm.train.state import TrainingState
from paddle_tfm.train.step import Step
from paddle_tfm.units import in_shell

FOLDER = "diverged"  # among a run's checkpoints
Batches = Sequence[Batch[np.ndarray]]


def not_finite(metrics: Mapping[str, Any], step: int) -> str | None:
    """A sentence if the loss or the gradient's norm is NaN or infinite."""
    for name in ("loss", "gradient_norm"):
        if not math.isfinite(metrics[name]):
            return f"the {name.replace('_', ' ')} was no number at step {step} ({metrics[name]})"
    return None


def keep(state: TrainingState, step: int, batches: Batches, sentence: str, report: Callable[[str], None]) -> None:
    """Save what `paddle-tfm check RUN` needs: the model before the step, and its batches.

    Args:
        state: as before the step, but for the stream. sentence: what was no number. report: gets a sentence on what is
            kept.
    """
    run, where = state.run, origin(state.step, step, batches)
    beside, arrays = packed(batches)
    kept = {"failed_step": step, "sentence": sentence, "origin": where, "batches": beside}
    kept |= state.progress.model_dump()
    tensors = {**state.parts(), "batches": {name: paddle.to_tensor(array) for name, array in arrays.items()}}
    try:
        checkpoint.save(state.folder(FOLDER), run.model, kept, tensors, state.identity)
    except UserError as error:
        report(str(error))  # a disk that is full must not hide what happened
    report(f"{sentence}; it begins with {where}. `paddle-tfm check {in_shell(run.folder)}` shows the step")


def read_kept(folder: Path) -> tuple[dict[str, Any], list[Batch[np.ndarray]]]:
    """What is known of a step that was kept, and its batches.

    Raises:
        UserError: they are missing or broken.
    """
    state, arrays = read_json(folder / manifest.STATE), checkpoint.load_arrays(folder, "batches")
    return state, unpacked(state["batches"], arrays)


# -------------------------------------------------------------------------------------------------- where it begins


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


def outputs(step: Step, number: int, batches: Batches) -> list[Output]:
    """What every layer computes in step `number`, in the order in which they end; the gradients are the parameters'
    afterwards. Nothing is updated. A layer of which only other methods than `forward` are called is not seen."""
    seen: list[Output] = []

    def look(path: str, layer: Layer, inputs: object, output: object) -> None:
        numbers = list(arrays(output))
        wrong = sum(_wrong(array, path) for array in numbers)
        finite = all(not _wrong(array, path) for array in arrays(inputs))
        seen.append(Output(path, type(layer).__name__, _largest(numbers), wrong, sum(a.size for a in numbers), finite))

    step.clear()
    buffers = step.model.built_buffers().values()
    with looking(step.model, look), undone(buffers), np.errstate(invalid="ignore", over="ignore"):
        Step.backward(step, number, batches)
    return seen


@contextmanager
def looking(model: Layer, look: Callable[..., Any]) -> Iterator[None]:
    """Within this block `look(path, layer, inputs, output)` is called at the end of each layer's `forward`."""
    hooks = [layer.register_forward_post_hook(partial(look, path)) for path, layer in model.named_sublayers()]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def origin(step: Step, number: int, batches: Batches) -> str:
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


def arrays(value: object) -> Iterator[np.ndarray]:
    """The floating-point tensors in what a layer puts out, as float32."""
    if isinstance(value, Tensor):
        if value.is_floating_point():
            yield value.detach().astype("float32").numpy()
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from arrays(item)


def _wrong(array: np.ndarray, path: str = "") -> int:
    """How many numbers are not finite; of a head −∞ is the logarithm of 0, which it may say of a word."""
    if path.partition(".")[0] == "head":
        return int(np.isnan(array).sum() + np.isposinf(array).sum())
    return int(array.size - np.isfinite(array).sum())


def _largest(arrays: Sequence[np.ndarray]) -> float:
    return max((float(np.abs(a[np.isfinite(a)]).max(initial=0.0)) for a in arrays), default=0.0)
