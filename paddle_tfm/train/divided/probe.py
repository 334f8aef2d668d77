"""Whether a model computes the same where its batch is divided, among ranks or into shards, and where it begins to
differ."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from paddle_tfm.model.transformer import Transformer
from paddle_tfm.train.divergence import arrays, looking
from paddle_tfm.train.step import Gradients, LossSum


@dataclass
class Attempt:
    """What came out of one backward pass: losses, gradients and buffers by path, and what each layer put out, by path
    in the order in which they end."""

    losses: LossSum
    gradients: dict[str, np.ndarray | None]
    buffers: dict[str, np.ndarray]
    outputs: list[tuple[str, list[np.ndarray]]]


def attempt(step: Gradients, backward: Callable[[], LossSum]) -> Attempt:
    """What `backward` computes; the gradients are cleared before and after."""
    outputs: list[tuple[str, list[np.ndarray]]] = []

    model = step.model
    step.clear()
    with looking(model, lambda path, layer, inputs, output: outputs.append((path, list(arrays(output))))):
        losses = backward()
    gradients = {
        path: None if parameter.grad is None else parameter.grad.numpy().copy()
        for path, parameter in model.named_parameters()
    }
    buffers = {path: buffer.numpy().copy() for path, buffer in model.built_buffers().items()}
    step.clear()
    return Attempt(losses, gradients, buffers, outputs)


def difference(whole: Attempt, divided: Attempt, model: Transformer) -> str | None:
    """Where an attempt in parts differs from that of a whole batch by more than rounding: a sentence without its end,
    or None. `divided` has of each output the first rows first."""
    wrong = _wrong_losses(whole, divided)
    norm = math.sqrt(sum(float(np.vdot(each, each)) for each in whole.gradients.values() if each is not None))
    for path, one in whole.gradients.items():
        other = divided.gradients[path]
        same = one is other if one is None or other is None else close(one, other, norm)
        wrong = wrong or (None if same else f"the gradient of {path} is another")
    for path, one in whole.buffers.items():
        size = float(np.linalg.norm(one.astype("float64")))
        same = close(one.astype("float64"), divided.buffers[path].astype("float64"), size)
        wrong = wrong or (None if same else f"the buffer {path} is another")
    return wrong and (_first_output(whole, divided, model) or wrong)


def _wrong_losses(whole: Attempt, divided: Attempt) -> str | None:
    for name, value in whole.losses.aux_losses.items():
        if not math.isclose(value, divided.losses.aux_losses.get(name, math.nan), rel_tol=1e-3, abs_tol=1e-7):
            return f"the auxiliary loss '{name}' is another"
    same = math.isclose(whole.losses.loss, divided.losses.loss, rel_tol=1e-4)
    return None if same else "the loss is another"


def _first_output(whole: Attempt, divided: Attempt, model: Transformer) -> str | None:
    """The innermost layer that differs first."""
    layers = dict(model.named_sublayers())
    for (path, ones), (_, others) in zip(whole.outputs, divided.outputs):
        for one, other in zip(ones, others):
            comparable = one.ndim == other.ndim > 0 and one.shape[1:] == other.shape[1:] and len(other) <= len(one)
            if comparable and not _equal(one[: len(other)], other):
                return f"{path} ({type(layers[path]).__name__}) puts out other numbers"
    return None


def _equal(one: np.ndarray, other: np.ndarray) -> bool:
    return np.allclose(one, other, rtol=1e-3, atol=1e-4 * max(1.0, float(np.abs(one).max(initial=0.0))))


def close(one: np.ndarray, other: np.ndarray, norm: float) -> bool:
    """Whether two gradients are equal except for rounding, which is relative to the norm of all gradients together
    (`norm`): the gradient of a key's bias is 0, and rounding is all that it holds."""
    return bool(np.linalg.norm(one - other) <= 1e-3 * np.linalg.norm(one) + 1e-6 * norm)
