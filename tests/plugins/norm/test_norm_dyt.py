import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.norm.dyt import DynamicTanh


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(0.5, 3.0, shape).astype(paddle.get_default_dtype())


def test_bfloat16_comes_back_as_bfloat16():
    x = draw(2, 3, 6)
    y = DynamicTanh(6)(paddle.to_tensor(x).astype("bfloat16"))
    assert y.dtype == paddle.bfloat16
    np.testing.assert_allclose(y.astype("float32").numpy(), DynamicTanh(6)(paddle.to_tensor(x)).numpy(), atol=0.02)


@pytest.mark.parametrize("alpha", [0.0, -0.5])
def test_refuses(alpha):
    with pytest.raises(ValueError, match="`alpha` must be positive, but is"):
        DynamicTanh(4, alpha=alpha)
