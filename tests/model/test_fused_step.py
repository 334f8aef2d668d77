"""A step's loss and gradients by fused functions are those of Paddle's own operations, in whole models."""

from __future__ import annotations

import numpy as np
import paddle
import pytest

from paddle_tfm import randomness
from paddle_tfm.onednn import kernels
from paddle_tfm_plugins.attention import _attend

SOME = {
    "as it comes": [],
    "post": ["model.placement=post"],
    "inner norm": ["model.placement=sub_ln"],
    "inner dropout": ["model.feed_forward={name: relu, inner_dropout: 0.2}"],
    "gated": ["model.feed_forward={name: swiglu, inner_dropout: 0.2}"],
    "own head": ["model.head=linear", "model.share_embeddings=false"],
    "relative": ["model.position=shaw"],
    "alibi": ["model.position=alibi"],
    "grouped": ["model.attention={name: grouped_query, kv_heads: 1}"],
    "qk norm": ["model.attention=qk_norm"],
    "rotary": ["model.position=rotary"],
    "t5": ["model.position=t5"],
    "talking": ["model.attention=talking_heads"],
    "decoder only": ["model.encoder_layers=0", "evaluate.metrics=[perplexity]", "evaluate.best=perplexity"],
}


def loss_and_gradients(model, batch, smoothing):
    with randomness.random_context(1, 2, 0, 0, len(batch.index)):
        loss = model.loss(batch, smoothing)
        loss.backward()
    gradients = {name: parameter.grad.numpy() for name, parameter in model.named_parameters() if parameter.trainable}
    model.clear_gradients()
    return float(loss), gradients


@pytest.mark.parametrize("overrides", SOME.values(), ids=list(SOME))
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_and_gradients_are_the_plain_ones(monkeypatch, make_model, make_batch, overrides, smoothing):
    model, batch = make_model("model.dropout=0.3", *overrides), make_batch()
    model.train()
    loss, gradients = loss_and_gradients(model, batch, smoothing)
    monkeypatch.setattr(kernels, "usable", lambda *tensors: False)
    plain_loss, plain = loss_and_gradients(model, batch, smoothing)
    assert loss == pytest.approx(plain_loss, rel=1e-5)
    assert gradients.keys() == plain.keys()
    largest = max(np.abs(gradient).max() for gradient in plain.values())
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, plain[name], rtol=1e-3, atol=1e-5 * largest, err_msg=name)


@pytest.mark.parametrize("held", [0, 1 << 24])
@pytest.mark.parametrize("block", [1, 50, 200])
@pytest.mark.parametrize("position", ["sinusoidal", "alibi", "rotary"])
def test_attention_in_blocks_of_queries_is_that_of_all_queries_at_once(
    monkeypatch, make_model, make_batch, block, held, position
):
    """Three rows of two heads and up to nine keys: blocks of one query, of a few, of nearly all."""
    model, batch = make_model("model.dropout=0.3", f"model.position={position}"), make_batch()
    model.train()
    loss, gradients = loss_and_gradients(model, batch, 0.1)
    monkeypatch.setattr(_attend, "HELD", held)
    monkeypatch.setattr(_attend, "BLOCK", block)
    in_blocks, others = loss_and_gradients(model, batch, 0.1)
    assert in_blocks == pytest.approx(loss, rel=1e-6)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(others[name], gradient, rtol=1e-3, atol=1e-6, err_msg=name)


def test_a_part_of_the_gradients_may_be_asked_for_in_a_step(make_model, make_batch):
    model, batch = make_model("model.dropout=0.3"), make_batch()
    model.train()
    _, whole = loss_and_gradients(model, batch, 0.1)
    for name, parameter in model.named_parameters():
        if not name.endswith("norms.0.weight"):
            continue
        with randomness.random_context(1, 2, 0, 0, len(batch.index)):
            (gradient,) = paddle.grad(model.loss(batch, 0.1), [parameter])
        np.testing.assert_allclose(gradient.numpy(), whole[name], rtol=1e-5, atol=1e-7)
