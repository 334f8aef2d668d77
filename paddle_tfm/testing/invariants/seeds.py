"""Random numbers: the same seed gives the same, and evaluation draws none."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import paddle
from paddle import nn

from paddle_tfm import randomness
from paddle_tfm.layers import Dropout
from paddle_tfm.model.transformer import Transformer
from paddle_tfm.testing.invariants import COMPONENTS, LAYERS, WHOLE_MODEL
from paddle_tfm.testing.models.model_under_test import ModelUnderTest, same_draws, select_rows
from paddle_tfm.testing.models.scene import Scene, real
from paddle_tfm.testing.other_process import as_in_another_process
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result, Skip, difference

LOW, HIGH, DRAWS = 0.1, 0.6, 4
HALF, AVERAGED, HARDLY = 0.5, 32, 1e-9
MIN_SHARE = 0.6  # without the factor 1 / (1 − rate) it is 0.5; before a norm 0.7, and more before an activation


@check(
    *COMPONENTS,
    invariant="the same seed gives the same model, and the same training step, in every process",
    consequence="runs cannot be repeated, nor resumed",
    hint="draws from Paddle's, NumPy's or Python's generator in `forward` (use paddle_tfm.layers.Dropout), in an "
    "initializer (use its `rng`); `hash` of a text, which is another in each process "
    "(`paddle_tfm.randomness.generator(key)`)",
    each_scene=True,
)
def repeatable(scene: Scene) -> Result:
    one = scene.model(dropout=0.3)
    paddle.seed(12345)
    with as_in_another_process():
        same = scene.model(dropout=0.3)
    for (name, a), b in zip(one.named_parameters(), same.parameters()):
        if not np.array_equal(a.numpy(), b.numpy()):
            return Failed(f"{name} starts from other values in another process, although the seed is the same")
    if dict(one.named_buffers()):
        first = scene.model(seed=4, moved=False)
        with as_in_another_process():
            second = scene.model(seed=4, moved=False)
        for (name, a), (_, b) in zip(first.named_buffers(), second.named_buffers()):
            if not np.array_equal(a.numpy(), b.numpy()):
                return Failed(f"{name}, a buffer, starts from other values although the seed is the same")
    batch = scene.batch()
    with as_in_another_process():
        other = scene.outputs(same, batch)
    if failed := difference(scene.outputs(one, batch), other, "the same seed in another process", 0.0):
        return failed
    one.train()
    losses = []
    for i in range(2):
        paddle.seed(i)
        process = as_in_another_process() if i else nullcontext()
        with paddle.no_grad(), randomness.random_context(7, 1), process:
            losses.append(float(one.loss(batch)))
    if losses[0] != losses[1]:
        return Failed(f"one training step computed twice: the loss is {losses[0]:.6g}, then {losses[1]:.6g}")
    return Passed()


@check(
    *("attention", "placement", "position", "feed_forward", "norm", "head"),
    invariant="a class with `dropout` uses it, and a higher rate changes its output more; the mean output of "
    "attention and feed-forward stays the same, and each sentence has its own draws",
    consequence="a recipe's dropout does nothing, or something else than it says: the variant overfits, or underfits, "
    "for that alone",
    hint="the Dropout that the constructor makes: whether `forward` calls it; keep and drop probability exchanged; the "
    "factor 1 / (1 − rate); one draw for the whole batch",
)
def dropout(subject) -> Result:
    scene: Scene = subject.scenes[0]
    if subject.kind in ("attention", "feed_forward") and (failed := _quieter_by_its_own(subject)):
        return failed
    if not subject.takes("dropout"):
        return Skip("its constructor takes no `dropout`")
    low, high = (_moved_by_dropout(scene, rate) for rate in (LOW, HIGH))
    if high == 0.0:
        return Failed(f"in training with dropout {HIGH:g} in it alone, two steps give the same: it draws nothing")
    if low >= high:
        return Failed(f"dropout {LOW:g} in it alone moves outputs by {low:.2g}, dropout {HIGH:g} by {high:.2g}")
    if subject.kind in ("attention", "feed_forward"):
        usual, draws = _drawn_outputs(scene)
        if (share := _share(usual, draws)) < MIN_SHARE:
            return Failed(f"with dropout {HALF:g} its output is on average {share:.2f} of that without")
        if np.array_equal(draws[:, 0], draws[:, 1]):
            return Failed("a sentence that stands twice in a batch gets the same draws twice")
    return Passed()


def _share(usual: np.ndarray, draws: np.ndarray) -> float:
    """How much of the usual output is there on average over draws [·, …]."""
    return float((draws.mean(0) * usual).sum() / (usual * usual).sum())


def _quieter_by_its_own(subject) -> Failed | None:
    """Failed where dropout of a rate of its own, raised to a half, makes the output quieter."""
    scene: Scene = subject.scenes[0]
    inside = scene.instances(scene.model())[0].sublayers()
    if sum(isinstance(part, Dropout) for part in inside) <= subject.takes("dropout"):
        return None
    if (share := _share(*_drawn_outputs(scene, raised=True))) < MIN_SHARE:
        return Failed(
            f"with all dropout inside it raised to {HALF:g} its output is on average {share:.2f} of that without"
        )
    return None


def _in_it_alone(scene: Scene, rate: float) -> Transformer:
    """A model with this dropout in the component, and none beside it."""
    model = scene.model(dropout=rate)
    mine = {id(part) for instance in scene.instances(model) for part in instance.sublayers(include_self=True)}
    for layer in model.sublayers():
        if isinstance(layer, Dropout) and id(layer) not in mine:
            layer.rate = 0.0
    return model


def _drawn_outputs(scene: Scene, raised: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Of the lowest instance, over a sentence that stands twice: its output [2, T, C] in evaluation, and in training
    with dropout 0.5, `AVERAGED` times [·, 2, T, C]; `raised`: dropout of rates of its own is 0.5 too."""
    model = _in_it_alone(scene, HALF)
    layer, inputs = scene.instances(model)[0], []
    for part in layer.sublayers() if raised else []:
        if isinstance(part, Dropout):
            part.rate = HALF

    def noted(layer: nn.Layer, arguments: Any) -> Any:
        inputs.append(arguments)

    layer.register_forward_pre_hook(noted)
    scene.outputs(model, select_rows(scene.batch(), [0, 0]))
    arguments = inputs[0]
    draws = []
    with paddle.no_grad():
        usual = layer(*arguments).numpy()
        layer.train()
        for seed in range(AVERAGED):
            with same_draws(layer, seed):
                draws.append(layer(*arguments).numpy())
    return usual, np.stack(draws)


def _moved_by_dropout(scene: Scene, rate: float) -> float:
    """The mean change of outputs from evaluation to training, over a few draws, with dropout in the component alone."""
    model, batch = _in_it_alone(scene, rate), scene.batch()
    usual = scene.outputs(model, batch)
    model.train()
    changes = []
    for seed in range(DRAWS):
        with paddle.no_grad(), same_draws(model, seed):
            h, memory = model(batch)
            changes.append(np.abs(real(model.head.log_probs(h, memory), batch) - usual).mean())
    return float(np.mean(changes)) if np.ptp(changes) else 0.0


@check(
    *LAYERS,
    WHOLE_MODEL,
    invariant="dropout is off in evaluation",
    consequence="outputs change from call to call, and scores are too low",
    hint="a dropout that does not ask `self.training`; functional dropout with its default `training=True`",
    each_scene=True,
)
def evaluation(model_under_test: ModelUnderTest) -> Result:
    plain, noisy = model_under_test.model(moved=False), model_under_test.model(dropout=0.5, moved=False)
    weights = dict(plain.named_parameters())
    for name, parameter in noisy.named_parameters():
        if name in weights:
            parameter.set_value(weights[name])
    batch = model_under_test.batch()
    once, again = model_under_test.outputs(noisy, batch), model_under_test.outputs(noisy, batch)
    if failed := difference(once, again, "evaluated twice", 0.0):
        return failed
    usual = model_under_test.outputs(plain, batch)
    failed = difference(usual, once, "evaluated with and without dropout in the recipe")
    if failed and isinstance(model_under_test, Scene):  # `plain` has none at all; rates of its own may act here
        for name, parameter in (hardly := model_under_test.model(dropout=HARDLY, moved=False)).named_parameters():
            parameter.set_value(weights[name])
        failed = difference(model_under_test.outputs(hardly, batch), once, "evaluated with and without dropout")
    return failed or Passed()
