import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.norm.group import GroupNorm


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(2.0, 3.0, shape).astype(paddle.get_default_dtype())


def trained(norm):
    """The norm with a weight and a bias that are not 1 and 0."""
    for i, parameter in enumerate(norm.parameters()):
        parameter.set_value(draw(*parameter.shape, seed=i + 1))
    return norm


def test_equal_channels_are_harmless():
    norm, x = trained(GroupNorm(4, groups=2)), paddle.full([1, 2, 4], 3.0)
    x.stop_gradient = False
    y = norm(x)
    y.sum().backward()
    np.testing.assert_allclose(y.numpy(), np.broadcast_to(norm.bias.numpy(), y.shape))
    assert np.isfinite(x.grad.numpy()).all()


def test_bfloat16_comes_back_as_bfloat16():
    x = draw(2, 3, 8)
    y = GroupNorm(8, 2)(paddle.to_tensor(x).astype("bfloat16"))
    assert y.dtype == paddle.bfloat16
    np.testing.assert_allclose(y.astype("float32").numpy(), GroupNorm(8, 2)(paddle.to_tensor(x)).numpy(), atol=0.05)


@pytest.mark.parametrize("groups", [0, -2, 5, 12, 24])
def test_refuses_groups(groups):
    with pytest.raises(ValueError, match=f"`groups` must divide the width 12 .* but is {groups}"):
        GroupNorm(12, groups)


def test_refuses_eps():
    with pytest.raises(ValueError, match="`eps` must be positive, but is 0"):
        GroupNorm(12, eps=0.0)
