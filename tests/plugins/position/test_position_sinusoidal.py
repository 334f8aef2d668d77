import math

import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.position.sinusoidal import Sinusoidal


def table(positions, d_model, base=10000.0):
    """The encoding of int64 [B, T] alone: what is added to zeros."""
    positions = np.atleast_2d(positions)
    zeros = paddle.zeros([*positions.shape, d_model], "float64")
    return Sinusoidal(d_model, base).embed(zeros, paddle.to_tensor(positions)).numpy()


@pytest.mark.parametrize("d_model, base", [(8, 10000.0), (6, 100.0), (7, 10000.0), (1, 10.0)])
def test_formula(d_model, base):
    positions = [0, 1, 2, 511, 100_003]
    expected = np.zeros([1, 5, d_model])
    for row, p in enumerate(positions):
        for c in range(d_model):
            angle = p / base ** ((c - c % 2) / d_model)
            expected[0, row, c] = math.cos(angle) if c % 2 else math.sin(angle)
    np.testing.assert_allclose(table(positions, d_model, base), expected, atol=1e-9)


def test_known_example():
    expected = [[0, 1, 0, 1], [0.84147, 0.54030, 0.09983, 0.99500], [0.90930, -0.41615, 0.19867, 0.98007]]
    expected += [[0.14112, -0.98999, 0.29552, 0.95534]]
    np.testing.assert_allclose(table(range(4), 4, 100.0)[0], expected, atol=5e-6)


@pytest.mark.parametrize("k", [1, 7, 100])
def test_a_step_is_a_rotation(k):
    """PE(p + k) = R(k) · PE(p), the same R for every p."""
    d_model, positions = 8, np.arange(50)
    here, there = table(positions, d_model)[0], table(positions + k, d_model)[0]
    rotation = np.zeros([d_model, d_model])
    for i in range(0, d_model, 2):
        angle = k / 10000 ** (i / d_model)
        rotation[i : i + 2, i : i + 2] = [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
    np.testing.assert_allclose(there, here @ rotation.T, atol=1e-9)


def test_products_depend_on_the_difference_only_and_decay():
    pe = table(np.arange(200), 64)[0]
    products = pe @ pe.T
    for difference in (0, 1, 5, 60):
        np.testing.assert_allclose(np.diagonal(products, difference), products[0, difference], atol=1e-8)
    assert products[0, 0] == pytest.approx(32.0)
    near, far = products[0, :10].mean(), products[0, 100:].mean()
    assert (np.diff(products[0, :4]) < 0).all() and far < near / 1.5


def test_float32_far_out():
    far = np.array([[40_001]])
    zeros = paddle.zeros([1, 1, 16])
    y = Sinusoidal(16).embed(zeros, paddle.to_tensor(far))
    assert y.dtype == paddle.float32
    np.testing.assert_allclose(y.numpy(), table(far, 16), atol=1e-6)


def test_is_added_at_given_positions():
    x = paddle.randn([3, 4, 6])
    positions = np.array([[0, 1, 2, 3], [5, 6, 7, 8], [2, 2, 2, 2]])
    y = Sinusoidal(6).embed(x, paddle.to_tensor(positions)).numpy()
    np.testing.assert_allclose(y - x.numpy(), table(positions, 6), atol=1e-6)
    shared = Sinusoidal(6).embed(x, paddle.to_tensor(positions[1:2])).numpy()
    np.testing.assert_allclose(shared - x.numpy(), np.repeat(table(positions[1:2], 6), 3, 0), atol=1e-6)


def test_gradient_passes_through():
    x = paddle.randn([2, 3, 4])
    x.stop_gradient = False
    Sinusoidal(4).embed(x, paddle.arange(3).unsqueeze(0)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 1.0)


def test_contract():
    assert Sinusoidal(4).uses() == {"embed"}
    assert not Sinusoidal(4).state_dict()  # nothing to save
    with pytest.raises(ValueError, match="`base` must be positive, but is 0"):
        Sinusoidal(4, base=0.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_that_are_looked_up_are_those_of_the_formula(dtype):
    """Single positions and several, rising past the table and back, negative ones and such beyond any table."""
    encoding = Sinusoidal(6)
    for positions in (
        [[3]],
        [[0, 1, 2]],
        [[70]],
        [[2], [5]],
        [[200]],
        [[-1]],
        [[0]],
        [[4_095]],
        [[4_096]],
        [[100_003, 1]],
    ):
        angle = np.array(positions)[..., None] / 10000.0 ** (np.array([0, 0, 2, 2, 4, 4]) / 6)
        expected = np.where(np.arange(6) % 2, np.cos(angle), np.sin(angle))
        x = paddle.ones([2, len(positions[0]), 6], dtype)
        y = encoding.embed(x, paddle.to_tensor(positions))
        assert y.dtype == x.dtype
        np.testing.assert_allclose(y.numpy(), 1.0 + np.broadcast_to(expected, y.shape), atol=1e-6)
