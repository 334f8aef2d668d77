"""What the options of a component of a model change."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from paddle import nn

from paddle_tfm import randomness
from paddle_tfm.protocols import Tap
from paddle_tfm.testing.invariants import COMPONENTS
from paddle_tfm.testing.model_under_test import same_draws
from paddle_tfm.testing.other_options import each_option
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Result
from paddle_tfm.testing.scene import Scene, make_batch
from paddle_tfm.testing.size import LONG_TEXT

DROPOUT, SMOOTHING, STEPS, RATE, SEED = 0.1, 0.1, 3, 0.1, 7
SMALL = 1e-6


@check(
    *COMPONENTS,
    invariant="each option changes something",
    consequence="a recipe sets it, and nothing follows: a sweep over it compares a variant with itself",
    hint="an option that is only stored, or only checked: read it where the formula has it, or leave it out",
    information=True,
)
def options(subject) -> Result:
    def observe(others: Mapping[str, object]) -> Iterator[np.ndarray]:
        varied = copy.copy(subject)
        varied.spec = {**subject.spec, **others}
        value = varied.at(subject.site_names) if subject.site_names else varied.spec
        size = subject.scenes[0].size
        return _observed(Scene(varied, size, varied.settings(size, value), "with another option"))

    return each_option(subject, observe)


def _observed(scene: Scene) -> Iterator[np.ndarray]:
    """All that a model gives: its state, outputs in evaluation (of short texts, long ones and small inputs), then
    losses, gradients, parameters and buffers in a few steps of training, and outputs after them."""
    model, batch = scene.model("float64", dropout=DROPOUT), scene.batch()
    yield from _state(model)
    yield np.array([getattr(layer, "population", 0) for layer in scene.instances(model)])  # the trainer reads it
    for each in (batch, make_batch(LONG_TEXT)):
        yield scene.outputs(model, each)
    hooks = [layer.register_forward_pre_hook(_small_input) for layer in scene.instances(model)[:1]]
    yield scene.outputs(model, batch)
    for hook in hooks:
        hook.remove()
    model.train()
    for step in range(1, STEPS + 1):
        tap = Tap()
        with same_draws(model), randomness.random_context(SEED, step):
            loss = model.loss(batch, SMOOTHING, tap)
        yield from [part.numpy() for part in (loss, *tap.aux_losses.values())]
        (loss / batch.tokens).backward()
        gradients = [(p, p.grad.numpy().copy()) for p in model.parameters() if p.grad is not None]
        yield from [gradient for _, gradient in gradients]
        for parameter, gradient in gradients:
            parameter.set_value(parameter.numpy() - RATE * gradient)
        model.clear_gradients()
        yield from _state(model)
    model.eval()
    yield scene.outputs(model, batch)


def _small_input(layer: nn.Layer, inputs: Any) -> Any:
    """What acts near zero only, as many an epsilon, acts here."""
    return (SMALL * inputs[0], *inputs[1:])


def _state(model) -> Iterator[np.ndarray]:
    for name, tensor in model.state_dict().items():
        yield np.array(name)
        yield tensor.numpy().copy()
