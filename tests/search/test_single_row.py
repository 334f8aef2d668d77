"""One sentence is decoded over arrays, beside the same model over tensors and beside formulas in NumPy."""

import contextlib

import numpy as np
import paddle
import pytest
from search_tiny import encoded

from paddle_tfm import paddle_compat, single_row
from paddle_tfm.data.batches import Batch
from paddle_tfm.layers import Linear
from paddle_tfm.model.stack import Decoder
from paddle_tfm.protocols import Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm.search.decoding import ModelDecoding, decode_all, decode_batch
from paddle_tfm_plugins.attention.multihead import MultiHead
from paddle_tfm_plugins.feed_forward.relu import ReLU
from paddle_tfm_plugins.norm.layer import LayerNorm
from paddle_tfm_plugins.norm.rms import RMSNorm
from paddle_tfm_plugins.search.beam import Beam
from paddle_tfm_plugins.search.greedy import Greedy

TOKENS = [1, 5, 6, 7, 8, 5]
COMPUTED = [
    (),
    ("model.placement=post", "model.norm=rms"),
    ("model.position=rotary", "model.attention.bias=false"),
    ("model.position=alibi",),
    ("model.norm={name: layer, bias: false}", "model.feed_forward={name: relu, bias: false}"),
    ("model.encoder_layers=0", "task=text", "evaluate.metrics=[perplexity]", "evaluate.best=perplexity"),
]
BY_PADDLE = [
    ("model.position=shaw",),
    ("model.attention=gated",),
    ("model.feed_forward=gelu",),
    ("model.placement=sub_ln",),
    ("model.norm=scale",),
]


@pytest.fixture
def travelling(monkeypatch):
    """What travelled between layers of a decoder, by type, a step each."""
    types, leave = [], Decoder.leave
    monkeypatch.setattr(Decoder, "leave", lambda self, x, info: types.append(type(x)) or leave(self, x, info))
    return types


def steps(model, batch: Batch, direct: bool, rows=()):
    """Log-probabilities of each step; with `rows`, which outputs go on before each of the last steps."""
    block = paddle_compat.direct_attributes(model) if direct else contextlib.nullcontext()
    outputs = []
    with paddle.no_grad(), block:
        memory = model.encode(batch.source, batch.source_valid, batch.copy_ids)
        decoding = ModelDecoding(model, memory, [20], [0])
        number = 1
        for i, token in enumerate(TOKENS):
            outputs.append(decoding.advance(paddle.full([number], token, "int64")).numpy().copy())
            if len(TOKENS) - i <= len(rows):
                selected = rows[len(rows) - (len(TOKENS) - i)]
                number = len(selected)
                decoding.select(paddle.to_tensor(selected, dtype="int64"))
    return outputs


@pytest.mark.parametrize("options", COMPUTED + BY_PADDLE, ids=str)
def test_arrays_give_what_tensors_give(make_model, make_batch, travelling, options):
    model, batch = make_model(*options), make_batch((5,), (4,))
    plain = steps(model, batch, False)
    assert {*travelling} == {paddle.Tensor}
    travelling.clear()
    ours = steps(model, batch, True)
    assert {*travelling} == {paddle.Tensor if options in BY_PADDLE else np.ndarray}
    for a, b in zip(ours, plain):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-5)


@pytest.mark.parametrize("rows", [[[0, 0, 0], [2, 1], [1]], [[0, 0], [1], [0]], [[0], [0, 0], [0, 1]]])
def test_one_row_becomes_several_and_one_again(make_model, make_batch, travelling, rows):
    model, batch = make_model(), make_batch((5,), (4,))
    plain = steps(model, batch, False, rows)
    travelling.clear()
    ours = steps(model, batch, True, rows)
    assert {*travelling} == {np.ndarray, paddle.Tensor}
    for a, b in zip(ours, plain):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-5)


@pytest.mark.parametrize("search", [Greedy(), Beam(size=3)])
def test_a_search_gives_what_paddle_gives(make_model, make_batch, monkeypatch, search):
    model, batch = make_model(), make_batch((5,), (4,))
    ours = decode_batch(model, batch, search)
    monkeypatch.setattr(single_row, "computes", lambda stack, x: False)
    plain = decode_batch(model, batch, search)
    assert [each.ids for each in ours[0]] == [each.ids for each in plain[0]]
    np.testing.assert_allclose([each.score for each in ours[0]], [each.score for each in plain[0]], atol=1e-4)


def test_a_model_in_training_is_decoded_without_dropout(make_model, monkeypatch):
    model, examples, modes = make_model("model.dropout=0.5"), [encoded([5, 6, 4])], []
    predict = type(model).predict
    monkeypatch.setattr(type(model), "predict", lambda self, *a: modes.append(self.training) or predict(self, *a))
    model.train()
    outputs = decode_all(model, examples, Greedy())
    assert {*modes} == {False} and all(layer.training for layer in model.sublayers(include_self=True))
    model.eval()
    assert outputs == decode_all(model, examples, Greedy())


class Plain(ReLU):
    """A subclass that says nothing of arrays, and computes what only tensors can."""

    def forward(self, x, info, tap):
        return super().forward(paddle.nn.functional.relu(x), info, tap)


def _subclass(model):
    model.decoder.layers[1].feed_forward.__class__ = Plain


def _hook(model):
    model.decoder.layers[0].self_attention.value.register_forward_post_hook(lambda *_: None)


def _hook_attention(model):
    model.decoder.layers[0].self_attention.register_forward_post_hook(lambda *_: None)


def _hook_norm(model):
    model.decoder.final_norm.register_forward_pre_hook(lambda *_: None)


def _drop(model):
    drop = model.decoder.layers[0].placement.drops[0]
    drop.rate = 0.5
    drop.train()


def _double(model):
    model.to(dtype="float64")


@pytest.mark.parametrize("change", [_subclass, _hook, _hook_attention, _hook_norm, _drop, _double])
def test_paddle_computes_what_arrays_cannot(make_model, make_batch, travelling, change):
    model, batch = make_model(), make_batch((5,), (4,))
    change(model)
    steps(model, batch, True)
    assert {*travelling} == {paddle.Tensor}


def test_a_recorded_pass_and_gradients_are_paddles(make_model, make_batch, travelling):
    model, batch = make_model(), make_batch((5,), (4,))
    with paddle_compat.direct_attributes(model):
        tap = Tap(recording=True)
        token, state = paddle.full([1, 1], 5, "int64"), model.start(model.encode(batch.source, batch.source_valid))
        with paddle.no_grad():
            model.decode(token, state, tap=tap)
        assert any(name.endswith("self.attention") for name, _ in tap.recorded)
        h, _ = model.decode(token, state)
        assert not h.stop_gradient
    assert {*travelling} == {paddle.Tensor}


# ------------------------------------------------------------------------------------------------------------ formulas


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def perturbed(layer):
    for number, parameter in enumerate(layer.parameters()):
        parameter.set_value(draw(*parameter.shape, seed=number + 1))
    layer.eval()
    return layer


@pytest.mark.parametrize("bias", [True, False])
def test_affine(bias):
    layer, x = perturbed(Linear(6, 5, bias)), draw(1, 1, 6)
    expected = x.reshape(6).astype("float64") @ layer.weight.numpy() + (layer.bias.numpy() if bias else 0.0)
    with paddle_compat.direct_attributes(layer):
        for _ in range(2):
            np.testing.assert_allclose(single_row.affine(layer, x), expected, rtol=1e-5, atol=1e-6)


def test_views_end_with_the_search():
    layer, x = perturbed(Linear(6, 5)), draw(6)
    with paddle_compat.direct_attributes(layer):
        single_row.affine(layer, x)
    layer.weight = layer.create_parameter([6, 5])
    layer.weight.set_value(np.zeros([6, 5], "float32"))
    np.testing.assert_allclose(single_row.affine(layer, x), layer.bias.numpy())
    with paddle_compat.direct_attributes(layer):
        np.testing.assert_allclose(single_row.affine(layer, x), layer.bias.numpy())


def test_a_tensor_is_a_copy():
    x = draw(1, 1, 7)
    y, before = single_row.tensor(x), x.copy()
    x += 1.0
    assert y.shape == [1, 1, 7] and y.dtype == paddle.float32 and y.place.is_cpu_place()
    np.testing.assert_array_equal(y.numpy(), before)


@pytest.mark.parametrize("bias", [True, False])
def test_layer_norm(bias):
    norm, x = perturbed(LayerNorm(9, eps=1e-3, bias=bias)), 3.0 * draw(1, 1, 9) + 2.0
    before, wide = x.copy(), x.astype("float64")
    expected = (wide - wide.mean()) / np.sqrt(wide.var() + 1e-3) * norm.weight.numpy()
    expected += norm.bias.numpy() if bias else 0.0
    np.testing.assert_allclose(norm(x), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(x, before)


def test_rms():
    norm, x = perturbed(RMSNorm(9, eps=1e-2)), draw(1, 1, 9)
    before, wide = x.copy(), x.astype("float64")
    expected = wide / np.sqrt((wide**2).mean() + 1e-2) * norm.weight.numpy()
    np.testing.assert_allclose(norm(x), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(x, before)


def test_feed_forward():
    layer, x = perturbed(ReLU(6, 10)), draw(1, 1, 6)
    before = x.copy()
    inner, outer = ([each.weight.numpy(), each.bias.numpy()] for each in (layer.inner, layer.output))
    expected = np.maximum(x.astype("float64") @ inner[0] + inner[1], 0.0) @ outer[0] + outer[1]
    np.testing.assert_allclose(layer(x, None, Tap()), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(x, before)


REFUSED = {
    "inner norm": lambda: MultiHead(8, 2, 0.0, inner_norm=LayerNorm),
    "projection norm": lambda: MultiHead(8, 2, 0.0, projection_norm=LayerNorm),
    "inner norm of feed-forward": lambda: ReLU(8, 16, inner_norm=LayerNorm),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_more_in_it_is_not_computed(case):
    assert not REFUSED[case]().computes_arrays()


@pytest.mark.parametrize("layer", [MultiHead(8, 2, 0.0), ReLU(8, 16), LayerNorm(8), RMSNorm(8)])
def test_what_has_not_is(layer):
    assert layer.computes_arrays()


@pytest.mark.parametrize("hidden, size", [(False, 1.0), (True, 1.0), (False, 100.0)])
def test_attention(hidden, size):
    """Three keys, one of them padding or not; scores far beyond what exp can take."""
    layer, tokens = perturbed(MultiHead(8, 2, 0.0)), size * draw(3, 1, 1, 8)
    encoding, positions = PositionalEncoding(), paddle.arange(3).unsqueeze(0)
    valid = paddle.to_tensor([[True, not hidden, True]])
    info, kv = TokenInfo(encoding, positions[:, 2:], valid[:, 2:]), None
    for token in tokens:
        new = layer.project(token, info)
        kv = new if kv is None else kv.extend(new)
    mask = Mask(positions[:, 2:], positions, valid, True, encoding)
    ours = layer(tokens[2], kv, info, mask, Tap())
    x = tokens.reshape(3, 8).astype("float64")
    q, k, v = (x @ each.weight.numpy() + each.bias.numpy() for each in (layer.query, layer.key, layer.value))
    heads = []
    for columns in (slice(0, 4), slice(4, 8)):
        scores = k[:, columns] @ q[2, columns] / 2.0
        weights = np.exp(scores - scores.max()) * valid.numpy()[0]
        heads.append(weights / weights.sum() @ v[:, columns])
    expected = np.concatenate(heads) @ layer.output.weight.numpy() + layer.output.bias.numpy()
    assert ours.shape == (1, 1, 8)
    np.testing.assert_allclose(ours.reshape(8), expected, rtol=1e-4, atol=1e-4 * size)
    np.testing.assert_allclose(kv.key.numpy()[0, 1], k[:, 4:], rtol=1e-4, atol=1e-5 * size)
    np.testing.assert_allclose(kv.value.numpy()[0, 0], v[:, :4], rtol=1e-4, atol=1e-5 * size)
