import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.norm.batch import BatchNorm


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(2.0, 3.0, shape).astype(paddle.get_default_dtype())


def trained(width=4, **options):
    """A norm with a weight, a bias and running values that are not those at the start."""
    norm = BatchNorm(width, **options)
    for i, tensor in enumerate([norm.weight, norm.bias, norm.running_mean, norm.running_variance]):
        tensor.set_value(np.abs(draw(width, seed=i + 1)))
    return norm


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_tokens_use_the_running_values(count):
    norm, reference = trained(), trained()
    reference.eval()
    x = paddle.to_tensor(draw(1, 3, 4), stop_gradient=False)
    valid = paddle.to_tensor([[i < count for i in range(3)]])
    y = norm(x, valid)
    y.sum().backward()
    np.testing.assert_allclose(y.numpy(), reference(x, valid).numpy(), rtol=1e-5)
    for ours, theirs in zip(norm.buffers(), reference.buffers()):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    assert np.isfinite(x.grad.numpy()).all()
