import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.norm.scale import ScaleNorm


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(2.0, 3.0, shape).astype(paddle.get_default_dtype())


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
