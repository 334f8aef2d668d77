"""Where a number that is not finite comes from: what every layer computes in one step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from paddle import Tensor

from paddle_tfm.data.batches import Batch
from paddle_tfm.train.buffers import undone
from paddle_tfm.train.step import Step


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
            numbers = list(arrays(output))
            wrong = sum(_wrong(array, path) for array in numbers)
            finite = all(not _wrong(array, path) for array in arrays(inputs))
            seen.append(
                Output(path, type(layer).__name__, _largest(numbers), wrong, sum(a.size for a in numbers), finite)
            )

        return hook

    step.clear()
    hooks = [layer.register_forward_post_hook(listen(path)) for path, layer in step.model.named_sublayers()]
    try:
        with undone(step.model.built_buffers().values()), np.errstate(invalid="ignore", over="ignore"):
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
