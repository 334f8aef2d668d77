import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.position.fire import FIRE


def row(*positions):
    return paddle.to_tensor([positions])


def test_a_sign_of_c_or_of_the_factor_means_nothing(float64):
    encoding, at = FIRE(2, threshold=5.0), row(0, 1, 4, 9)
    before = encoding.bias(at, at).numpy()
    encoding.c.set_value(-encoding.c.numpy())
    encoding.factor.set_value(-encoding.factor.numpy())
    np.testing.assert_array_equal(encoding.bias(at, at).numpy(), before)


def test_starting_values(float64):
    paddle.seed(5)
    encoding = FIRE(2, width=2000)
    assert encoding.c.numpy() == [0.1] and encoding.factor.numpy() == [1.0]
    bends = encoding.inner.bias.numpy()
    assert -1 <= bends.min() < -0.99 and 0.99 < bends.max() <= 1 and abs(bends.mean()) < 0.05
    paddle.seed(5)
    np.testing.assert_array_equal(FIRE(2, width=2000).inner.bias.numpy(), bends)


def test_contract():
    assert FIRE(4).uses() == {"bias"}
    assert not FIRE(4).per_layer and FIRE(4, layerwise=True).per_layer and not FIRE(4).per_layer
    shapes = {name: p.shape for name, p in FIRE(4).named_parameters()}
    assert shapes == {"c": [1], "factor": [1], "inner.weight": [1, 32], "inner.bias": [32], "outer.weight": [32, 4]}
    with pytest.raises(ValueError, match="`width` must be at least 1, but is 0"):
        FIRE(4, width=0)
    with pytest.raises(ValueError, match="`threshold` must be positive, but is -1"):
        FIRE(4, threshold=-1.0)
