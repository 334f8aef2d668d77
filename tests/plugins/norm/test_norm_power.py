import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.norm.power import PowerNorm

VALID = np.arange(5) < np.array([[5], [2], [4]])  # [3, 5]
PHASES = {"warming up": 9, "after": 0}  # by name the warm-up: the phase of the first passes


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(0.7, 3.0, shape).astype(paddle.get_default_dtype())


def trained(width=4, **options):
    """A norm with a weight, a bias and running values that are not those at the start."""
    norm = PowerNorm(width, **options)
    for i, tensor in enumerate([norm.weight, norm.bias, norm.running_square, norm.running_gradient]):
        tensor.set_value(np.abs(draw(width, seed=i + 1)))
    return norm


def buffers(norm):
    return {name: tensor.numpy() for name, tensor in norm.named_buffers()}


def there_and_back(norm, x, g, valid=VALID):
    """y, and the gradients of x, weight and bias."""
    x = paddle.to_tensor(x, stop_gradient=False)
    y = norm(x, None if valid is None else paddle.to_tensor(valid))
    return [y.numpy(), *(gradient.numpy() for gradient in paddle.grad(y, [x, *norm.parameters()], paddle.to_tensor(g)))]


@pytest.mark.parametrize("warmup", PHASES.values(), ids=PHASES)
def test_gradients_of_a_part_of_the_inputs(warmup):
    """As `paddle.grad` may ask for them; only the way back to x moves the running gradient."""
    x, g = draw(3, 5, 4), draw(3, 5, 4, seed=9)
    whole = there_and_back(trained(warmup=warmup), x, g)
    for number in (0, 1, 2):
        norm, tensor = trained(warmup=warmup), paddle.to_tensor(x, stop_gradient=False)
        before = norm.running_gradient.numpy()
        y = norm(tensor, paddle.to_tensor(VALID))
        (gradient,) = paddle.grad(y, [tensor, norm.weight, norm.bias][number], paddle.to_tensor(g))
        np.testing.assert_allclose(gradient.numpy(), whole[1 + number], rtol=1e-6)
        assert np.array_equal(norm.running_gradient.numpy(), before) == (number > 0)


def test_without_a_gradient_the_running_gradient_stays():
    norm, x = trained(warmup=0), paddle.to_tensor(draw(3, 5, 4))
    before = buffers(norm)
    with paddle.no_grad():
        norm(x)
    after = buffers(norm)
    np.testing.assert_array_equal(after["running_gradient"], before["running_gradient"])
    assert not np.array_equal(after["running_square"], before["running_square"])
    assert after["passes"] == before["passes"] + 1


@pytest.mark.parametrize("warmup", PHASES.values(), ids=PHASES)
def test_a_batch_of_padding_moves_nothing_but_the_count(warmup):
    norm, x = trained(warmup=warmup), draw(1, 3, 4)
    before = buffers(norm)
    y, dx, _, _ = there_and_back(norm, x, x, np.zeros([1, 3], bool))
    assert not y.any() and not dx.any()
    assert {name for name, value in buffers(norm).items() if not np.array_equal(value, before[name])} == {"passes"}
