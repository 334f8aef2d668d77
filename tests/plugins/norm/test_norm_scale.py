import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.norm.rms import RMSNorm
from paddle_tfm_plugins.norm.scale import ScaleNorm


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(2.0, 3.0, shape).astype(paddle.get_default_dtype())


def test_known_values():
    """(3, 4) has length 5: with g = 10 it becomes (6, 8)."""
    norm = ScaleNorm(2)
    norm.weight.set_value(np.array([10.0], "float32"))
    np.testing.assert_allclose(norm(paddle.to_tensor([[[3.0, 4.0], [0.0, -0.5]]])).numpy(), [[[6, 8], [0, -10]]])


def test_every_token_has_length_g():
    norm = ScaleNorm(6)
    norm.weight.set_value(np.array([1.7], "float32"))
    lengths = np.linalg.norm(norm(paddle.to_tensor(draw(2, 3, 6))).numpy(), axis=-1)
    np.testing.assert_allclose(lengths, 1.7, rtol=1e-6)


def test_begins_as_rms_does():
    x = paddle.to_tensor(draw(2, 3, 64))
    np.testing.assert_allclose(ScaleNorm(64)(x).numpy(), RMSNorm(64)(x).numpy(), rtol=1e-5)


def test_one_number_is_learned():
    assert [list(parameter.shape) for parameter in ScaleNorm(64).parameters()] == [[1]]


@pytest.mark.parametrize("eps", [1e-5, 7.0])  # the second is longer than some of the vectors, shorter than others
def test_gradients(float64, assert_gradients, eps):
    norm, x = ScaleNorm(4, eps), paddle.to_tensor(draw(2, 3, 4))
    assert_gradients(lambda: norm(x), x, norm.weight)


def test_size_of_the_input_does_not_matter_and_its_mean_does():
    norm, x = ScaleNorm(6), paddle.to_tensor(draw(2, 3, 6))
    np.testing.assert_allclose(norm(x * 100.0).numpy(), norm(x).numpy(), rtol=1e-5)
    assert np.abs((norm(x + 1.0) - norm(x)).numpy()).max() > 0.01


def test_zeros_are_harmless():
    norm, x = ScaleNorm(4), paddle.zeros([1, 2, 4])
    x.stop_gradient = False
    y = norm(x)
    y.sum().backward()
    assert not y.numpy().any()
    np.testing.assert_allclose(x.grad.numpy(), 2.0 / 1e-5, rtol=1e-5)  # g / eps


def test_bfloat16_comes_back_as_bfloat16():
    x = draw(2, 3, 6)
    y = ScaleNorm(6)(paddle.to_tensor(x).astype("bfloat16"))
    assert y.dtype == paddle.bfloat16
    np.testing.assert_allclose(y.astype("float32").numpy(), ScaleNorm(6)(paddle.to_tensor(x)).numpy(), atol=0.03)


def test_refuses():
    with pytest.raises(ValueError, match=r"`eps` must be in \(0, 1e15\], but is 0"):
        ScaleNorm(4, eps=0.0)
