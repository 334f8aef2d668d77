"""What the options of a component of a model change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from paddle import nn

from paddle_tfm import randomness
from paddle_tfm.errors import UserError
from paddle_tfm.protocols import Tap
from paddle_tfm.testing.invariants import COMPONENTS, LAYERS
from paddle_tfm.testing.models.component_under_test import ComponentUnderTest
from paddle_tfm.testing.models.model_under_test import same_draws
from paddle_tfm.testing.models.scene import Scene, make_batch
from paddle_tfm.testing.models.size import LONG_TEXT
from paddle_tfm.testing.other_options import OPTIONS, AtAllSites, choices_of, each_option, numbers_of
from paddle_tfm.testing.report import CHECKS, FAIL, Outcome, check
from paddle_tfm.testing.results import NOT_FINITE, Failed, Note, Result, Skip

DROPOUT, SMOOTHING, STEPS, RATE, SEED = 0.1, 0.1, 3, 0.1, 7
SMALL = 1e-6


@check(*COMPONENTS, **OPTIONS)
def options(subject) -> Result:
    return each_option(subject, lambda others: _observed(_with_option(subject, others)))


LAWS = frozenset({"runs", "modes", "trains", "causal", "padding", "cached", "dropout"})
LAWS_OF_NUMBERS = frozenset({"causal", "padding", "cached", "neighbours", "groups"})  # whatever a number is


@check(
    *LAYERS,
    invariant="the checks also pass with its other choices, and with each switch turned; no future leak, no effect of "
    "padding or neighbours, and the same from the cache, with small and large numbers too",
    consequence="a recipe that sets the option trains an unchecked variant",
    hint="the lines of that choice alone: each has its own mask, its own cache, its own dropout; what a number caps, "
    "clips or counts: hidden keys, or other sentences, among them",
)
def choices(subject: ComponentUnderTest) -> Result:
    looked_at = []
    for name, value in choices_of(subject):
        try:
            varied = AtAllSites(subject.registry, subject.kind, subject.name, {**subject.own_options, name: value})
        except UserError:  # it is refused, beside the others as they are
            continue
        varied.long_scenes = varied.scenes_of_equal_sizes = []
        for each in CHECKS[subject.kind]:
            if each.name in LAWS and (outcome := each.run(varied)).status == FAIL:
                return Failed(f"with `{name}` {value}, {each.name}: {outcome.detail}", raised=outcome.raised)
        looked_at.append(f"`{name}` {value}")
    for name, value in numbers_of(subject):
        try:
            broken = _broken_by_a_number(subject, {name: value})
        except Exception:  # a number may be absurd
            continue
        value = f"{value:g}" if isinstance(value, float) else value
        if broken:
            return Failed(f"with `{name}` {value}, {broken.check.name}: {broken.detail}")
        looked_at.append(f"`{name}` {value}")
    return Note(f"also with {', '.join(looked_at)}") if looked_at else Skip("it has no other choices and no numbers")


def _broken_by_a_number(subject: ComponentUnderTest, others: Mapping[str, object]) -> Outcome | None:
    """The first check that fails with these options too, and passes without them."""
    varied = _in_one_scene(subject, others)
    for each in CHECKS[subject.kind]:
        if each.name in LAWS_OF_NUMBERS and (outcome := each.run(varied)).status == FAIL:
            if not (outcome.raised or NOT_FINITE in outcome.detail):
                if each.run(_in_one_scene(subject, {})).status != FAIL:
                    return outcome
    return None


def _in_one_scene(subject: ComponentUnderTest, others: Mapping[str, object]) -> ComponentUnderTest:
    """The component with these options too, in its first scene, evaluated in float64: where a number enlarges
    everything, it enlarges rounding too."""
    scene = _with_option(subject, others)
    vars(scene)["evaluated_model"] = scene.model("float64")
    varied: Any = scene.subject
    varied.scenes, varied.long_scenes, varied.scenes_of_equal_sizes = [scene], [], []
    return varied


def _with_option(subject: ComponentUnderTest, others: Mapping[str, object]) -> Scene:
    """The first scene of a component, with these options too."""
    varied = subject.varied(others)
    value = varied.at(subject.site_names) if subject.site_names else varied.spec
    size = subject.scenes[0].size
    return Scene(varied, size, varied.settings(size, value), "with another option")


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
        loss.backward()
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
