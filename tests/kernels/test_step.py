"""A step's loss and gradients by fused functions are those of Paddle's own operations, in whole models."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import paddle
import pytest
from kernels_in_use import in_step

from paddle_tfm import randomness
from paddle_tfm.kernels.cpu import affine, products
from paddle_tfm.layers import Dropout, Linear
from paddle_tfm.protocols import KeyValue, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention._dot_product import attend
from paddle_tfm_plugins.kernel import _attend
from paddle_tfm_plugins.norm.layer import LayerNorm

SOME = {
    "as it comes": [],
    "post": ["model.placement=post"],
    "inner norm": ["model.placement=sub_ln"],
    "inner dropout": ["model.feed_forward={name: relu, inner_dropout: 0.2}"],
    "gated": ["model.feed_forward={name: swiglu, inner_dropout: 0.2}"],
    "own head": ["model.head=linear", "model.share_embeddings=false"],
    "relative": ["model.position=shaw"],
    "relative keys": ["model.position={name: shaw, with_values: false}"],
    "transformer_xl": ["model.position=transformer_xl"],
    "alibi": ["model.position=alibi"],
    "grouped": ["model.attention={name: grouped_query, kv_heads: 1}"],
    "cosine": ["model.attention=cosine"],
    "qk norm": ["model.attention=qk_norm"],
    "rotary": ["model.position=rotary"],
    "t5": ["model.position=t5"],
    "talking": ["model.attention=talking_heads"],
    "decoder only": ["model.encoder_layers=0", "evaluate.metrics=[perplexity]", "evaluate.best=perplexity"],
}


def loss_and_gradients(model, batch, smoothing, by_products=True, kind="float32", formulas=False):
    context = randomness.random_context(1, 2, 0, 0, len(batch.index))
    computing = model.computing("step", products.available(kind) if by_products else None)
    with context, nullcontext() if formulas else computing:
        loss = model.loss(batch, smoothing)
        loss.backward()
    gradients = {name: parameter.grad.numpy() for name, parameter in model.named_parameters() if parameter.trainable}
    model.clear_gradients()
    return float(loss), gradients


@pytest.mark.parametrize("overrides", SOME.values(), ids=list(SOME))
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("by_products", [False, True], ids=["kernels", "with products"])
def test_loss_and_gradients_are_those_of_the_formulas(make_model, make_batch, overrides, smoothing, by_products):
    """`by_products`: where products are oneDNN's too, sublayers are one function each."""
    model, batch = make_model("model.dropout=0.3", *overrides), make_batch()
    model.train()
    loss, gradients = loss_and_gradients(model, batch, smoothing, by_products)
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
    monkeypatch.setattr(affine, "usable", lambda x, layers: False)
    plain_loss, plain = loss_and_gradients(model, batch, 0.1, kind="bfloat16")
    rounding = sum(np.square(plain[name] - exact[name]).sum() for name in plain) ** 0.5
    apart = sum(np.square(plain[name] - gradients[name]).sum() for name in plain) ** 0.5
    assert plain_loss != exact_loss and rounding > 0.0
    assert loss == pytest.approx(plain_loss, abs=0.3 * abs(plain_loss - exact_loss) + 1e-5)
    assert apart < 0.1 * rounding


@pytest.mark.parametrize("held", [0, 1 << 24])
@pytest.mark.parametrize("small", [0, _attend.SMALL])
@pytest.mark.parametrize("block", [1, 50, 200])
@pytest.mark.parametrize("position", ["sinusoidal", "alibi", "rotary"])
def test_attention_in_blocks_of_queries_is_that_of_all_queries_at_once(
    monkeypatch, make_model, make_batch, block, held, position, small
):
    """Three rows of two heads and up to nine keys: blocks of one query, of a few, of nearly all."""
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


def test_a_part_of_the_gradients_may_be_asked_for_in_a_step(make_model, make_batch):
    model, batch = make_model("model.dropout=0.3"), make_batch()
    model.train()
    _, whole = loss_and_gradients(model, batch, 0.1)
    for name, parameter in model.named_parameters():
        if not name.endswith("norms.0.weight"):
            continue
        context = randomness.random_context(1, 2, 0, 0, len(batch.index))
        with context, model.computing("step", products.available("float32")):
            (gradient,) = paddle.grad(model.loss(batch, 0.1), [parameter])
        np.testing.assert_allclose(gradient.numpy(), whole[name], rtol=1e-5, atol=1e-7)


def test_evaluation_in_a_step_draws_nothing(make_model, make_batch):
    model, batch = make_model("model.dropout=0.3"), make_batch()
    model.train()
    model.eval()
    alone = float(model.loss(batch))
    with randomness.random_context(1, 2), model.computing("step", products.available("float32")):
        assert float(model.loss(batch)) == pytest.approx(alone, rel=1e-5)


def test_a_step_records_the_weights_that_somebody_asks_for(make_model, make_batch):
    model, batch, taps = make_model(), make_batch(), [Tap(recording=True), Tap(recording=True)]
    model.loss(batch, tap=taps[0])
    with randomness.random_context(1, 2), model.computing("step", products.available("float32")):
        model.loss(batch, tap=taps[1])
    weights = [{name: x for name, x in tap.recorded if name.endswith("attention")} for tap in taps]
    assert weights[0].keys() == weights[1].keys() and len(weights[0]) > 1
    for name, x in weights[0].items():
        np.testing.assert_allclose(weights[1][name].numpy(), x.numpy(), rtol=1e-4, atol=1e-6)


class KeysAlone(PositionalEncoding):
    """Adds to scores what a key's position says."""

    def scores(self, q, k, q_positions, k_positions):
        return paddle.cos(k_positions.astype("float32")).reshape([1, 1, 1, -1]) + 0.0 * paddle.matmul(
            q, k, transpose_y=True
        )


class ValuesAlone(PositionalEncoding):
    """Adds the squares of a query's weights to what it gathers."""

    def values(self, weights, q_positions, k_positions):
        return (weights**2).sum(-1, keepdim=True).tile([1, 1, 1, 4])


@pytest.mark.parametrize(
    "encoding", [PositionalEncoding(), KeysAlone(), ValuesAlone()], ids=lambda one: type(one).__name__
)
def test_what_an_encoding_adds_is_in_a_step_too(rng, encoding):
    """Beside the formula in NumPy: softmax(q kᵀ / √D + s) v + r, causal, the first key of the second sentence hidden."""
    q, k, v = (rng.standard_normal((2, 2, 5, 4)) for _ in range(3))
    valid = np.ones((2, 5), bool)
    valid[1, 0] = False
    position = paddle.arange(5).unsqueeze(0)
    info = TokenInfo(encoding, position, paddle.to_tensor(valid))
    mask = Mask(position, position, info.valid, True, encoding)
    tensors = [paddle.to_tensor(x.astype("float32"), stop_gradient=False) for x in (q, k, v)]
    with randomness.random_context(1, 2), in_step():
        context = attend(tensors[0], KeyValue(*tensors[1:]), info, mask, Dropout(0.0), Tap())
    scores = q @ k.swapaxes(2, 3) / 2.0
    if isinstance(encoding, KeysAlone):
        scores = scores + np.cos(np.arange(5)) / 2.0  # s is scaled too
    scores = np.where(np.tril(np.ones((5, 5), bool)) & valid[:, None, None], scores, -1e9)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    expected = weights @ v + (isinstance(encoding, ValuesAlone) * weights**2).sum(-1, keepdims=True)
    sees = np.ones((2, 5), bool)
    sees[1, 0] = False  # that query sees nothing: any finite number may stand there
    np.testing.assert_allclose(
        np.moveaxis(context.numpy(), 1, 2)[sees], np.moveaxis(expected, 1, 2)[sees], rtol=1e-4, atol=1e-6
    )


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
