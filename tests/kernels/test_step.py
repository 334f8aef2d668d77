"""A step's loss and gradients by fused functions are those of Paddle's own operations, in whole models."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import paddle
import pytest
from kernels_in_use import in_step

from paddle_tfm import randomness
from paddle_tfm.kernels.cpu import products
from paddle_tfm.layers import Dropout, Linear
from paddle_tfm_plugins.kernel import _attend
from paddle_tfm_plugins.norm.layer import LayerNorm

SOME = {
    "as it comes": [],
    "inner norm": ["model.placement=sub_ln"],
    "inner dropout": ["model.feed_forward={name: relu, inner_dropout: 0.2}"],
    "own head": ["model.head=linear", "model.share_embeddings=false"],
    "relative": ["model.position=shaw"],
    "alibi": ["model.position=alibi"],
    "grouped": ["model.attention={name: grouped_query, kv_heads: 1}"],
    "talking": ["model.attention=talking_heads"],
    "pope": ["model.position=pope"],  # the heads are wider than what they are scaled by
    "decoder only": ["model.encoder_layers=0", "evaluate.metrics=[perplexity]", "evaluate.best=perplexity"],
}


def loss_and_gradients(model, batch, smoothing, kind="float32", formulas=False):
    context = randomness.random_context(1, 2, 0, 0, len(batch.index))
    computing = model.computing("step", products.available(kind))
    with context, nullcontext() if formulas else computing:
        loss = model.loss(batch, smoothing)
        loss.backward()
    gradients = {name: parameter.grad.numpy() for name, parameter in model.named_parameters() if parameter.trainable}
    model.clear_gradients()
    return float(loss), gradients


@pytest.mark.parametrize(
    ("overrides", "smoothing"), [(each, i % 2 / 10) for i, each in enumerate(SOME.values())], ids=list(SOME)
)
def test_loss_and_gradients_are_those_of_the_formulas(make_model, make_batch, overrides, smoothing):
    model, batch = make_model("model.dropout=0.3", *overrides), make_batch()
    model.train()
    loss, gradients = loss_and_gradients(model, batch, smoothing)
    plain_loss, plain = loss_and_gradients(model, batch, smoothing, formulas=True)
    assert loss == pytest.approx(plain_loss, rel=1e-5)
    assert gradients.keys() == plain.keys()
    largest = max(np.abs(gradient).max() for gradient in plain.values())
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, plain[name], rtol=1e-3, atol=1e-5 * largest, err_msg=name)


@pytest.mark.skipif(products.available("bfloat16") != "bfloat16", reason="products in bfloat16 are not to be had here")
@pytest.mark.parametrize("overrides", SOME.values(), ids=list(SOME))
def test_one_function_rounds_the_factors_that_products_alone_round(monkeypatch, make_model, make_batch, overrides):
    """In bfloat16. The queries' scale is a power of two (D = 16), for it is applied after the rounding in the one and
    before it in the other. A factor may still be rounded to another number where a sum before it differs in its last
    bit, so: far closer to products one by one than these are to float32."""
    model, batch = make_model("model.dropout=0.3", "model.d_model=32", *overrides), make_batch()
    model.train()
    exact_loss, exact = loss_and_gradients(model, batch, 0.1)
    loss, gradients = loss_and_gradients(model, batch, 0.1, kind="bfloat16")
    monkeypatch.setattr(products, "usable", lambda x, layers: False)
    plain_loss, plain = loss_and_gradients(model, batch, 0.1, kind="bfloat16")
    rounding = sum(np.square(plain[name] - exact[name]).sum() for name in plain) ** 0.5
    apart = sum(np.square(plain[name] - gradients[name]).sum() for name in plain) ** 0.5
    assert plain_loss != exact_loss and rounding > 0.0
    assert loss == pytest.approx(plain_loss, abs=0.3 * abs(plain_loss - exact_loss) + 1e-5)
    assert apart < 0.1 * rounding


@pytest.mark.parametrize(
    ("position", "block", "small", "held"),
    [
        ("sinusoidal", 1, 0, 0),
        ("sinusoidal", 50, _attend.SMALL, 1 << 24),
        ("alibi", 50, 0, 1 << 24),
        ("alibi", 1, _attend.SMALL, 0),
    ],
)
def test_attention_in_blocks_of_queries_is_that_of_all_queries_at_once(
    monkeypatch, make_model, make_batch, block, held, position, small
):
    """Three rows of two heads and up to nine keys: blocks of one query, of a few."""
    model, batch = make_model("model.dropout=0.3", f"model.position={position}"), make_batch()
    model.train()
    loss, gradients = loss_and_gradients(model, batch, 0.1)
    monkeypatch.setattr(_attend, "HELD", held)
    monkeypatch.setattr(_attend, "BLOCK", block)
    monkeypatch.setattr(_attend, "SMALL", small)
    in_blocks, others = loss_and_gradients(model, batch, 0.1)
    assert in_blocks == pytest.approx(loss, rel=1e-6)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(others[name], gradient, rtol=1e-3, atol=1e-6, err_msg=name)


def test_evaluation_in_a_step_draws_nothing(make_model, make_batch):
    model, batch = make_model("model.dropout=0.3"), make_batch()
    model.train()
    model.eval()
    alone = float(model.loss(batch))
    with randomness.random_context(1, 2), model.computing("step", products.available("float32")):
        assert float(model.loss(batch)) == pytest.approx(alone, rel=1e-5)


@pytest.fixture
def transposes_are_views():
    """A call that says whether transposes share the memory of what they transpose; they do not under our settings."""
    yield lambda shared: paddle.set_flags({"FLAGS_use_stride_kernel": shared})
    paddle.set_flags({"FLAGS_use_stride_kernel": False})


WITH_VIEWS = {
    "layer norm": lambda: LayerNorm(6),
    "dropout": lambda: Dropout(0.3),
    "linear": lambda: Linear(6, 6),
}


@pytest.mark.parametrize("make", WITH_VIEWS.values(), ids=list(WITH_VIEWS))
def test_inputs_and_gradients_may_be_views(rng, transposes_are_views, make):
    x, pull = (paddle.to_tensor(rng.standard_normal((6, 5)).astype("float32")) for _ in range(2))
    x.stop_gradient = False
    function, results = make(), []
    for shared in (True, False):
        transposes_are_views(shared)
        assert x.t().is_contiguous() != shared
        with randomness.random_context(1, 2), in_step(products.available("float32")):
            outputs = [function(x.t()), function(x.t().contiguous())]
        gradients = [paddle.grad((y.t() * pull).sum(), [x])[0] for y in outputs]
        results.append([tensor.numpy() for tensor in (*outputs, *gradients)])
    for one, other in zip(*results):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
