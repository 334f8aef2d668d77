"""Random numbers: the same seed gives the same, and evaluation draws none."""

from __future__ import annotations

import numpy as np
import paddle

from paddle_tfm import randomness
from paddle_tfm.testing.invariants import COMPONENTS, LAYERS, WHOLE_MODEL
from paddle_tfm.testing.model_under_test import ModelUnderTest
from paddle_tfm.testing.report import check
from paddle_tfm.testing.results import Failed, Passed, Result, difference
from paddle_tfm.testing.scene import Scene


@check(
    *COMPONENTS,
    invariant="the same seed gives the same model, and the same training step",
    consequence="runs cannot be repeated, nor resumed",
    hint="draws from Paddle's, NumPy's or Python's generator in `forward` (use paddle_tfm.layers.Dropout), in an "
    "initializer (use its `rng`)",
    each_scene=True,
)
def repeatable(scene: Scene) -> Result:
    one = scene.model(dropout=0.3)
    paddle.seed(12345)
    np.random.seed(12345)
    same = scene.model(dropout=0.3)
    for (name, a), b in zip(one.named_parameters(), same.parameters()):
        if not np.array_equal(a.numpy(), b.numpy()):
            return Failed(f"{name} starts from other values although the seed is the same")
    batch = scene.batch()
    one.train()
    losses = []
    for i in range(2):
        paddle.seed(i)
        with paddle.no_grad(), randomness.random_context(7, 1):
            losses.append(float(one.loss(batch)))
    if losses[0] != losses[1]:
        return Failed(f"one training step computed twice: the loss is {losses[0]:.6g}, then {losses[1]:.6g}")
    return Passed()


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
    return difference(usual, once, "evaluated with and without dropout in the recipe") or Passed()
