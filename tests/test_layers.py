"""Linear, Dropout and Embedding against NumPy, and each fast path against its plain twin."""

from __future__ import annotations

import math

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest

from paddle_tfm import memory, paddle_compat, randomness
from paddle_tfm.layers import Dropout, Embedding, Linear, linear, project_together
from paddle_tfm.onednn import kernels


def tensors(*shapes, dtype="float32"):
    rng = np.random.default_rng(1)
    made = [paddle.to_tensor(rng.standard_normal(shape).astype(dtype)) for shape in shapes]
    for tensor in made:
        tensor.stop_gradient = False
    return made


# -------------------------------------------------------------------------------------------------------------- linear


def test_a_parameter_that_the_memory_does_not_hold_is_refused_before(monkeypatch):
    monkeypatch.setattr(memory, "free", lambda: 2e7)
    monkeypatch.setattr(memory, "MUCH", 1e7)
    assert Linear(2048, 2048).weight.shape == [2048, 2048]  # 16.8 MB
    sentence = r"a parameter of shape \[4096, 4096\] needs 0\.1 GB, but 0\.0 GB are free"
    with pytest.raises(MemoryError, match=sentence):
        Linear(4096, 4096)


@pytest.mark.parametrize("shape", [(7, 5), (2, 7, 5), (2, 1, 5), (2, 3, 4, 5)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear_and_its_plain_twin_agree_in_value_and_gradient(shape, bias):
    x, weight, *rest = tensors(shape, (5, 6), *[(6,)] * bias, dtype="float64")
    b = rest[0] if bias else None
    up = paddle.to_tensor(np.random.default_rng(2).standard_normal([*shape[:-1], 6]))
    inputs = [x, weight, *rest]
    expected, outputs = F.linear(x, weight, b), linear(x, weight, b)
    np.testing.assert_allclose(outputs.numpy(), expected.numpy(), atol=1e-12)
    for one, other in zip(paddle.grad(outputs, inputs, up), paddle.grad(expected, inputs, up)):
        np.testing.assert_allclose(one.numpy(), other.numpy(), atol=1e-12)
    with paddle.no_grad():
        np.testing.assert_allclose(linear(x, weight, b).numpy(), expected.numpy(), atol=1e-12)


def test_a_gradient_may_be_asked_for_by_part():
    """Who looks at the gradient of an input alone (a map of what mattered) need not ask for the weights' too."""
    x, weight, bias = tensors((2, 3, 5), (5, 6), (6,))
    (gradient,) = paddle.grad(linear(x, weight, bias).sum(), [x])
    np.testing.assert_allclose(gradient.numpy(), np.broadcast_to(weight.numpy().sum(1), (2, 3, 5)), rtol=1e-5)


def test_the_layer_starts_with_a_bias_of_zero_or_has_none():
    layer = Linear(5, 6)
    assert [tuple(parameter.shape) for parameter in layer.parameters()] == [(5, 6), (6,)]
    assert not layer.bias.numpy().any()
    assert [tuple(parameter.shape) for parameter in Linear(5, 6, bias=False).parameters()] == [(5, 6)]


# ------------------------------------------------------------------------------------------------------------- dropout


def dropped(shape=(64, 1000), rate=0.1, seed=1, step=3, path="encoder.0", micro=0, values=None):
    layer = Dropout(rate)
    layer.path = path
    x = paddle.ones(shape) if values is None else values
    with randomness.random_context(seed, step, micro):
        return layer(x)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_an_element_is_kept_with_its_probability_and_the_mean_stays(rate):
    values = dropped(rate=rate).numpy()
    assert set(np.unique(values)) == {np.float32(0.0), np.float32(1.0 / (1.0 - rate))}
    # 64,000 draws: five standard errors
    assert (values == 0.0).mean() == pytest.approx(rate, abs=5 * math.sqrt(rate * (1 - rate) / values.size))


def test_the_mask_is_that_of_its_key_and_of_sixteen_bits_an_element():
    """Counter-based random numbers written out: runs of every version must see the same masks."""
    for shape in [(3, 5), (64, 33), (1, 1), (2, 3, 4)]:
        word = randomness.digest(1, "dropout", "encoder.0", 3, 0)
        rng = np.random.Generator(np.random.PCG64([word & 0xFFFFFFFF, word >> 32]))
        count = math.prod(shape)
        bits = np.frombuffer(rng.bytes(2 * count), dtype="<u2").reshape(shape)
        expected = np.where(bits < round(0.1 * 65536), np.float32(0.0), np.float32(1.0 / 0.9))
        np.testing.assert_array_equal(dropped(shape).numpy(), expected)


@pytest.mark.parametrize("shape", [(7, 3, 5), (7, 4), (7, 1), (14, 3)])
def test_a_share_of_a_batch_has_the_masks_of_its_rows(shape):
    """Of 7 rows; in the last case each of them twice in a row, as R-Drop has it."""
    whole, times = dropped(shape, rate=0.5).numpy(), shape[0] // 7
    for first, last in [(0, 3), (3, 7), (2, 3)]:
        layer = Dropout(0.5)
        layer.path = "encoder.0"
        with randomness.random_context(1, 3, 0, first, last - first):
            shard = layer(paddle.ones([times * (last - first), *shape[1:]]))
        np.testing.assert_array_equal(shard.numpy(), whole[times * first : times * last])


@pytest.mark.parametrize("other", [{"seed": 2}, {"step": 4}, {"path": "encoder.1"}, {"micro": 1}])
def test_masks_depend_on_the_whole_key_and_on_nothing_else(other):
    paddle.seed(1)
    first = dropped().numpy()
    paddle.seed(2)
    paddle.rand([3])
    np.testing.assert_array_equal(dropped().numpy(), first)
    agree = ((dropped(**other).numpy() == 0) == (first == 0)).mean()
    assert agree == pytest.approx(0.9**2 + 0.1**2, abs=0.01), "masks of different keys must be independent"


def test_the_gradient_goes_where_the_value_went():
    (x,) = tensors((8, 9))
    y = dropped(values=x)
    y.backward(paddle.ones_like(y))
    np.testing.assert_allclose(x.grad.numpy(), dropped((8, 9)).numpy())


@pytest.mark.parametrize("relu", [False, True])
def test_dropout_by_onednn_and_its_plain_twin_agree_in_value_and_gradient(monkeypatch, relu):
    x, up = tensors((7, 5, 11), (7, 5, 11))
    up.stop_gradient = True
    results = []
    for has_library in (True, False):
        if not has_library:
            monkeypatch.setattr(kernels, "usable", lambda *tensors: False)
        layer = Dropout(0.3)
        with randomness.random_context(1, 3):
            y = layer.after_relu(x) if relu else layer(x)
        results.append((y.numpy(), paddle.grad(y, [x], up)[0].numpy()))
    for one, other in zip(*results):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert ((results[0][0] == 0) >= (x.numpy() <= 0)).all() == relu


def test_after_relu_is_relu_at_evaluation_and_outside_a_run():
    (x,) = tensors((8, 9))
    layer = Dropout(0.5)
    kept = layer.after_relu(x).numpy()
    assert ((kept == 0) | np.isclose(kept, np.maximum(x.numpy(), 0) * 2)).all() and (kept != 0).any()
    layer.eval()
    np.testing.assert_array_equal(layer.after_relu(x).numpy(), np.maximum(x.numpy(), 0))


def test_it_is_the_identity_at_evaluation_and_at_rate_zero():
    (x,) = tensors((8, 9))
    layer = Dropout(0.5)
    layer.eval()
    assert layer(x) is x
    assert Dropout(0.0)(x) is x


def test_outside_a_training_run_it_draws_from_paddles_generator():
    layer, x = Dropout(0.5), paddle.ones([100])
    paddle.seed(5)
    first = layer(x).numpy()
    paddle.seed(5)
    np.testing.assert_array_equal(layer(x).numpy(), first)
    assert (layer(x).numpy() != first).any()


@pytest.mark.parametrize("rate", [1.0, -0.1, float("nan")])
def test_an_impossible_rate_is_refused(rate):
    with pytest.raises(ValueError, match=r"`rate` must be in \[0, 1\)"):
        Dropout(rate)


# ----------------------------------------------------------------------------------------------------------- embedding


@pytest.mark.parametrize("scale", [True, False])
def test_an_embedding_is_a_scaled_row_and_padding_gets_no_gradient(scale):
    layer = Embedding(6, 4, pad_id=0, unknown_id=3, scale=scale)
    ids = paddle.to_tensor([[1, 5, 0], [9, 2, 1]])  # 9 is beyond the table: looked up as 3
    table, factor = layer.weight.numpy(), 2.0 if scale else 1.0
    expected = table[[[1, 5, 0], [3, 2, 1]]] * factor
    expected[0, 2] = 0.0
    vectors = layer(ids)
    np.testing.assert_allclose(vectors.numpy(), expected, rtol=1e-6)
    vectors.sum().backward()
    np.testing.assert_allclose(layer.weight.grad.numpy().sum(1), np.array([0, 2, 1, 1, 0, 1]) * 4 * factor)


@pytest.mark.parametrize("bias", [True, False])
def test_several_products_in_one_while_weights_stay(bias):
    """A parameter that is replaced is seen at once; outside of such a block nothing is put together."""
    layer, parts, x = Linear(1, 1), [Linear(4, size, bias) for size in (3, 2)], paddle.randn([2, 1, 4])
    for part in parts if bias else []:
        part.bias.set_value(paddle.randn(part.bias.shape))

    def apart():
        weights = [(part.weight.numpy(), part.bias.numpy() if bias else 0.0) for part in parts]
        return np.concatenate([x.numpy() @ weight + shift for weight, shift in weights], -1)

    assert project_together(layer, parts, x) is None
    with paddle_compat.direct_attributes(layer):
        assert project_together(layer, parts, x) is None, "gradients are recorded"
        with paddle.no_grad():
            for _ in range(2):
                np.testing.assert_allclose(project_together(layer, parts, x).numpy(), apart(), rtol=1e-5, atol=1e-6)
            parts[1].weight = Linear(4, 2).weight
            np.testing.assert_allclose(project_together(layer, parts, x).numpy(), apart(), rtol=1e-5, atol=1e-6)
    with paddle.no_grad():
        assert project_together(layer, parts, x) is None
