"""Training with oneDNN's products: the same run as with Paddle's, divided among processes or not."""

from __future__ import annotations

import numpy as np
import paddle
import pytest

from paddle_tfm import processes
from paddle_tfm.data.batches import collate
from paddle_tfm.kernels.cpu import library, products
from paddle_tfm.train.changes import changes, rounding
from paddle_tfm.train.identity import identity

needs_float32 = pytest.mark.skipif(bool(products.why_not("float32")), reason=str(products.why_not("float32")))
needs_bfloat16 = pytest.mark.skipif(bool(library.why_not("bfloat16")), reason=str(library.why_not("bfloat16")))
BFLOAT16 = "train.products=bfloat16"


@pytest.fixture
def paddles_products(monkeypatch):
    """A function from which on steps are made that compute with Paddle's products."""
    return lambda: monkeypatch.setattr(library, "why_not", lambda kind="float32": "this is a test")


def first_step(trainer):
    """Loss and gradients of step 1 without dropout."""
    trainer.run.model.eval()
    batch = collate(trainer.run.encoded["train"][:20])
    loss = trainer.step.backward(1, [batch]).loss
    return loss, np.concatenate([parameter.grad.numpy().ravel() for parameter in trainer.step.parameters])


@needs_float32
@pytest.mark.parametrize("overrides", [[], ["model.head=tied"], ["model.feed_forward=swiglu", "train.r_drop=1.0"]])
def test_in_float32_a_step_is_that_of_paddles_products(make_trainer, paddles_products, overrides):
    trainer = make_trainer(*overrides, folder="ours")
    assert trainer.step.products == "float32"
    loss, gradient = first_step(trainer)
    paddles_products()
    trainer = make_trainer(*overrides, folder="paddles")
    assert trainer.step.products is None
    expected_loss, expected = first_step(trainer)
    assert loss == pytest.approx(expected_loss, rel=1e-6)
    np.testing.assert_allclose(gradient, expected, atol=1e-5 * np.abs(expected).max())


@needs_bfloat16
def test_in_bfloat16_a_step_is_near_that_of_float32_and_not_the_same(make_trainer):
    """bfloat16 has eight bits: a factor is off by 2⁻⁹ of itself at most. Parameters and gradients stay float32."""
    (loss, gradient), (expected_loss, expected) = (
        first_step(make_trainer(*overrides, folder=str(len(overrides)))) for overrides in ([BFLOAT16], [])
    )
    assert 0 < abs(loss - expected_loss) < 2e-3 * expected_loss
    distance = np.linalg.norm(gradient - expected) / np.linalg.norm(expected)
    assert 1e-4 < distance < 2e-2
    assert gradient.dtype == np.float32


@needs_bfloat16
def test_in_bfloat16_a_run_learns_as_one_in_float32(make_trainer):
    """Losses of every step, and what the parameters are at the end."""
    runs = {}
    for overrides in ([], [BFLOAT16]):
        trainer = make_trainer("train.steps=40", "evaluate.every=40", *overrides, folder=str(len(overrides)))
        trainer.run.model.train()
        losses = [trainer.step(number, trainer.next_batches()).loss for number in range(1, 41)]
        runs[len(overrides)] = np.array(losses)
        assert all(parameter.dtype == paddle.float32 for parameter in trainer.run.model.parameters())
    assert runs[0][-10:].mean() < 0.8 * runs[0][0], "nothing was learned, so that nothing is compared"
    np.testing.assert_allclose(runs[1], runs[0], rtol=2e-2)
    assert not np.array_equal(runs[1], runs[0])


@pytest.mark.skipif(not processes.can_fork(), reason="no fork here")
@needs_bfloat16
def test_steps_divided_among_processes_see_the_weights_of_each_step(make_trainer, monkeypatch):
    """Weights lie in shared memory, where a worker's tensors do not notice their change: a copy kept across steps, in
    bfloat16, would be an old one. Three steps, far apart, against the same in one process."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    rate = "train.schedule={name: constant, learning_rate: 0.02}"
    weights = []
    try:
        for number in (1, 2):
            trainer = make_trainer(rate, "model.dropout=0.0", BFLOAT16, folder=str(number))
            trainer.run.model.train()
            with trainer.sharded_step(number) as step:
                assert len(getattr(step, "workers", [])) == number - 1
                losses = [step(k, trainer.next_batches()).loss for k in (1, 2, 3)]
            weights.append(losses)
    finally:
        processes.set_threads(1)
    np.testing.assert_allclose(weights[1], weights[0], rtol=1e-2)
    assert abs(weights[0][2] - weights[0][0]) > 0.1, "the weights hardly changed"


def test_where_bfloat16_is_not_to_be_had_one_sentence_says_so(make_trainer, monkeypatch):
    reasons = {"bfloat16": "no instructions"}
    monkeypatch.setattr(products, "why_not", reasons.get)
    sentences: list[str] = []
    trainer = make_trainer(BFLOAT16, "train.steps=1", "evaluate.every=1", report=sentences.append)
    assert trainer.step.products == "float32"
    trainer.train()
    assert sum("train.products=bfloat16" in sentence and "no instructions" in sentence for sentence in sentences) == 1


@needs_float32
def test_the_identity_names_who_multiplies(make_run, monkeypatch):
    plan = make_run().plan
    version = ".".join(map(str, library.library().version))
    now = identity(plan, {})
    assert now["products"] == "float32 by MKL"
    plain = {**now, "products": "float32 by Paddle"}
    assert rounding(now, now) == changes(now, now) == changes(plain, now) == []
    assert rounding(plain, now) == [
        "the matrix products of its training steps were in float32 by Paddle and now are in float32 by MKL"
    ]
    elsewhere = {**now, "products": f"bfloat16 by oneDNN {version}"}
    (sentence,) = changes(elsewhere, now)
    assert "were in bfloat16" in sentence


@needs_float32
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
