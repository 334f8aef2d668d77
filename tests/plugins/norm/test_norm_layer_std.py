import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.norm.layer_std import LayerStd


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(2.0, 3.0, shape).astype(paddle.get_default_dtype())


def test_equal_channels_are_harmless():
    """The square root's gradient is infinite at 0; a padding row of zeros must not poison the rest with NaN."""
    norm = LayerStd(4)
    x = paddle.to_tensor([[[0.0] * 4, [3.0] * 4, [1.0, 2.0, 3.0, 5.0]]], stop_gradient=False)
    y = norm(x)
    (y * paddle.to_tensor(draw(1, 3, 4))).sum().backward()
    np.testing.assert_array_equal(y.numpy()[0, :2], 0.0)
    for tensor in (x, norm.weight, norm.bias):
        assert np.isfinite(tensor.grad.numpy()).all()
    assert np.abs(x.grad.numpy()).max() <= 1e8  # 1 / eps times the noise


def test_refuses():
    with pytest.raises(ValueError, match="`d_model` must be at least 2"):
        LayerStd(1)
    with pytest.raises(ValueError, match="`eps` must be positive, but is -1"):
        LayerStd(4, eps=-1.0)
