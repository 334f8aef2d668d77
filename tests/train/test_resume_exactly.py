"""A run that is interrupted and resumed is the uninterrupted one to the bit, with everything that a step fuses."""

import json

import numpy as np
import paddle
import pytest

from paddle_tfm.onednn import products
from paddle_tfm.train.checkpoint import load_part
from paddle_tfm.train.step import clip_gradients
from paddle_tfm_plugins.attention import _attend, _projected
from paddle_tfm_plugins.feed_forward import _one_function

pytestmark = pytest.mark.reliability

needs_products = pytest.mark.skipif(products.available("float32") is None, reason="products are Paddle's here")
SOME = {
    "projections within": ([], _projected._Attend),
    "rotated between": (["model.position=rotary"], _attend.Attend),
    "feed-forward": (["model.feed_forward={name: relu, inner_dropout: 0.2}"], _one_function._ReLU),
}


def same(one, other):
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        np.testing.assert_array_equal(tensor.numpy(), other[name].numpy(), err_msg=name)


@needs_products
@pytest.mark.parametrize(("overrides", "function"), SOME.values(), ids=list(SOME))
@pytest.mark.parametrize("held", [0, _attend.HELD], ids=["computed again", "held"])
def test_a_resumed_run_is_the_uninterrupted_one(make_trainer, train_in_parts, monkeypatch, overrides, function, held):
    """With dropout in attention, residuals and the hidden layer, and clipping at work in most steps."""
    calls = []
    forward = function.forward
    monkeypatch.setattr(function, "forward", lambda self, *inputs: calls.append(1) or forward(self, *inputs))
    monkeypatch.setattr(_attend, "HELD", held)
    monkeypatch.setattr(_attend, "BLOCK", 64)  # several blocks of queries
    settings = ("model.dropout=0.3", "train.clip_norm=0.5", *overrides)
    whole = make_trainer(*settings, folder="whole")
    whole.train()
    assert calls
    parts, _ = train_in_parts(*settings, stops=(2, 7))
    log = (whole.run.folder / "metrics.jsonl").read_text()
    assert (parts.run.folder / "metrics.jsonl").read_text() == log
    norms = [row["gradient_norm"] for row in map(json.loads, log.splitlines()) if "gradient_norm" in row]
    assert max(norms) > 0.5
    same(whole.run.model.state_dict(), parts.run.model.state_dict())
    moments = whole.step.optimizer.state_dict(), parts.step.optimizer.state_dict()
    same(*({name: value for name, value in of_one.items() if hasattr(value, "numpy")} for of_one in moments))


def test_biases_that_balance_experts_are_resumed_exactly(make_trainer, train_in_parts):
    """They move outside the gradient, in training alone: evaluations between steps change nothing."""
    settings = ("model.feed_forward={name: deepseek_moe, experts: 4, bias_rate: 0.05}", "model.dropout=0.3")
    whole, often = make_trainer(*settings), make_trainer(*settings, "evaluate.every=1", folder="often")
    whole.train(), often.train()
    parts, _ = train_in_parts(*settings, stops=(2, 7))
    at_the_end = [load_part(each.run.folder / "checkpoints" / "last", "model") for each in (whole, often, parts)]
    biases = [value.numpy() for name, value in at_the_end[0].items() if name.endswith("balance")]
    assert biases and all(np.abs(bias).max() > 0 for bias in biases)
    same(at_the_end[0], at_the_end[1])
    same(at_the_end[0], at_the_end[2])


def test_the_gradient_norm_is_that_of_all_gradients_and_clipping_keeps_their_direction():
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((300, 70), (70,), (1, 5), (3, 4, 5))]
    parameters = [paddle.create_parameter(array.shape, "float32") for array in arrays]
    for parameter, array in zip(parameters, arrays):
        parameter.grad = paddle.to_tensor(array)
    exact = np.sqrt(sum((array.astype(np.float64) ** 2).sum() for array in arrays))
    assert clip_gradients(parameters, None) == pytest.approx(exact, rel=1e-6)
    assert clip_gradients(parameters, 1.0) == pytest.approx(exact, rel=1e-6)
    for parameter, array in zip(parameters, arrays):
        np.testing.assert_allclose(parameter.grad.numpy(), array / exact, rtol=1e-5, atol=1e-8)
    assert clip_gradients(parameters, 2.0) == pytest.approx(1.0, rel=1e-5)  # below the bound: as they are
    np.testing.assert_allclose(parameters[1].grad.numpy(), arrays[1] / exact, rtol=1e-5, atol=1e-8)


@needs_products
def test_a_layer_that_somebody_listens_to_is_called(make_trainer):
    """Whoever registers a hook on a projection is called, though a step would compute it within another function."""
    trainer = make_trainer()
    layer = trainer.run.model.encoder.layers[0]
    called = {"query": 0, "output": 0}

    def listen(name):
        def hook(*_):
            called[name] += 1

        return hook

    layer.self_attention.query.register_forward_post_hook(listen("query"))
    layer.feed_forward.output.register_forward_pre_hook(listen("output"))
    trainer.run.model.train()
    trainer.step(1, trainer.next_batches())
    assert called == {"query": 1, "output": 1}
