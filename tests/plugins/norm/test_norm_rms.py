import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.norm.rms import RMSNorm


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(2.0, 3.0, shape).astype(paddle.get_default_dtype())


def test_zeros_are_harmless():
    norm, x = RMSNorm(4), paddle.zeros([1, 2, 4])
    x.stop_gradient = False
    norm(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 1e3, rtol=1e-5)  # weight / sqrt(eps)


def test_bfloat16_comes_back_as_bfloat16():
    x = draw(2, 3, 6)
    y = RMSNorm(6)(paddle.to_tensor(x).astype("bfloat16"))
    assert y.dtype == paddle.bfloat16
    np.testing.assert_allclose(y.astype("float32").numpy(), RMSNorm(6)(paddle.to_tensor(x)).numpy(), atol=0.03)


def test_refuses():
    with pytest.raises(ValueError, match="`eps` must be positive, but is 0"):
        RMSNorm(4, eps=0.0)
