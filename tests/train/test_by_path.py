"""Frozen parameters, which must not change the gradients of the rest, and factors of rates."""

import fnmatch

import numpy as np
import paddle
import pytest
from small_runs import TINY

from paddle_tfm import create_registry, load_recipe
from paddle_tfm.errors import RecipeError
from paddle_tfm.model.size import trained_parameters
from paddle_tfm.protocols import LayerSite
from paddle_tfm.sweep.check import check
from paddle_tfm.train.state import TrainingState
from paddle_tfm.train.step import Gradients

REGISTRY = create_registry()
B, T, C = 3, 5, 8


@pytest.mark.parametrize("name", REGISTRY.names("norm"))
def test_the_gradient_of_x_is_the_same_where_a_norm_is_frozen(name):
    """Of Paddle 3.3.1's `layer_norm` it is not: a frozen gain is left out."""
    rng = np.random.default_rng(1)
    site = LayerSite("encoder", "self", 0, 1, 1)
    norm = REGISTRY.resolve("norm", name, "norm").build(d_model=C, site=site, max_length=16)
    for parameter in norm.parameters():
        parameter.set_value(rng.uniform(0.5, 2.0, parameter.shape).astype("float32"))
    x, out = rng.normal(size=[B, T, C]).astype("float32"), rng.normal(size=[B, T, C]).astype("float32")
    valid, positions = paddle.ones([B, T], "bool"), paddle.arange(T).expand([B, T])
    results = []
    for frozen in (False, True):
        for parameter in norm.parameters():
            parameter.stop_gradient = frozen
        leaf = paddle.to_tensor(x, stop_gradient=False)
        y = norm(leaf, valid, positions)
        (y * paddle.to_tensor(out)).sum().backward()
        results.append((y.numpy(), leaf.grad.numpy()))
    for trained, fixed in zip(*results):
        np.testing.assert_allclose(fixed, trained, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("pattern", "kernels"),
    [
        ("encoder.layers.0.*", "true"),
        ("*norm*", "true"),
        ("*norm*", "false"),
        ("*.bias", "true"),
        ("source_embedding.*", "false"),
    ],
)
def test_frozen_parameters_change_no_gradient_of_the_others(make_run, kernels, pattern):
    gradients = {}
    for freeze in ("[]", f"['{pattern}']"):
        run = make_run(f"train.kernels={kernels}", "model.encoder_layers=2", f"train.freeze={freeze}", folder=freeze)
        step = Gradients(run.model, trained_parameters(run.model), run.settings.train, run.seed)
        run.model.train()
        step.backward(1, [next(run.stream())])
        named = run.model.named_parameters()
        gradients[freeze] = {path: each.grad.numpy() for path, each in named if each.grad is not None}
    whole, rest = gradients.values()
    assert 0 < len(rest) < len(whole)
    assert not any(fnmatch.fnmatchcase(path, pattern) for path in rest)
    assert set(rest) == {path for path in whole if not fnmatch.fnmatchcase(path, pattern)}
    for path, gradient in rest.items():
        np.testing.assert_allclose(gradient, whole[path], rtol=1e-4, atol=1e-6, err_msg=path)


def test_rates_are_multiplied_by_the_factors_of_all_patterns_that_fit(make_run):
    run = make_run("train.rate_factors={'*': 0.5, 'head.*': 4}", "train.optimizer={name: sgd, momentum: 0}")
    plain = make_run("train.optimizer={name: sgd, momentum: 0}", folder="plain")
    moved = []
    for each in (run, plain):
        before = {path: value.numpy() for path, value in each.model.named_parameters()}
        state = TrainingState(each)
        each.model.train()
        state.step(1, [next(state.stream)])
        moved.append({path: value.numpy() - before[path] for path, value in each.model.named_parameters()})
    for path, change in moved[0].items():
        factor = 2.0 if path.startswith("head.") else 0.5
        np.testing.assert_allclose(change, factor * moved[1][path], rtol=1e-3, atol=1e-7, err_msg=path)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("train.freeze=['encodr.*']", "'encodr.*' fits the path of no parameter; did you mean 'encoder.*'?"),
        ("train.freeze=[encoder]", "did you mean 'encoder.*'?"),
        ("train.rate_factors={'decoder.layer.*': 0.1}", "did you mean 'decoder.layers.*'?"),
        ("train.freeze=['*']", "freezes every parameter, so that nothing is left to train"),
        ("train.rate_factors={'encoder.*': -1}", "must be greater than 0, but is -1"),
        ("train.rate_factors={'encoder.*': 0}", "must be greater than 0, but is 0"),
    ],
)
def test_patterns_that_fit_nothing_are_found_before_the_training(setting, sentence):
    with pytest.raises(RecipeError) as caught:
        check(load_recipe("base", [*TINY, setting]), REGISTRY)
    assert sentence in str(caught.value) and setting.partition("=")[0] in str(caught.value)
