"""Linear, Dropout and Embedding against NumPy."""

from __future__ import annotations

import math

import numpy as np
import paddle
import pytest

from paddle_tfm import memory, randomness
from paddle_tfm.layers import Dropout, Embedding, Linear


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


def test_it_is_the_identity_at_evaluation_and_at_rate_zero():
    (x,) = tensors((8, 9))
    layer = Dropout(0.5)
    layer.eval()
    assert layer(x) is x
    assert Dropout(0.0)(x) is x


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
