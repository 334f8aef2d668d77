"""RAdam: momentum first, then Adam with steps that grow to full length."""

import paddle_tfm  # noqa: F401  before Paddle: it sets the environment that Paddle reads

# isort: split
from itertools import pairwise

import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.optimizer.adam import Adam
from paddle_tfm_plugins.optimizer.radam import RAdam, rectification


def path_of(update, weight, gradients, rate=0.1):
    out = []
    for gradient in gradients:
        weight.grad = paddle.to_tensor(np.asarray(gradient, dtype="float32"))
        update.set_lr(rate)
        update.step()
        update.clear_grad(set_to_zero=False)
        out.append(weight.numpy().copy())
    return np.array(out)


def parameter():
    return paddle.create_parameter([3], "float32", default_initializer=paddle.nn.initializer.Constant(1.0))


@pytest.mark.parametrize(("beta2", "first"), [(0.98, 5), (0.999, 5), (0.7, 6)])
def test_the_variance_is_tractable_from_the_step_of_the_formula(beta2, first):
    """ρ_t > 4 for the first time. By hand: β2 0.98 has ρ_4 3.95 and ρ_5 4.92; β2 0.7 has ρ_5 3.65 and ρ_6 4.07."""
    assert [rectification(beta2, t) is None for t in range(1, first)] == [True] * (first - 1)
    assert rectification(beta2, first) is not None


def test_the_rectification_rises_from_near_0_to_1():
    factors = [rectification(0.98, t) for t in range(5, 2000)]
    assert 0 < factors[0] < 0.1 and factors[-1] == pytest.approx(1.0, abs=1e-6)
    assert all(a < b or b == pytest.approx(1.0) for a, b in pairwise(factors))


def test_it_begins_as_momentum_and_ends_as_adam():
    gradients = np.random.default_rng(0).normal(size=(600, 3))
    weight, twin = parameter(), parameter()
    ours = path_of(RAdam().create([weight]), weight, gradients)
    adam = path_of(Adam().create([twin]), twin, gradients)
    momentum, expected = np.zeros(3), np.ones(3)
    for t in range(1, 5):
        momentum = 0.9 * momentum + 0.1 * gradients[t - 1]
        expected = expected - 0.1 * momentum / (1 - 0.9**t)
        np.testing.assert_allclose(ours[t - 1], expected, rtol=1e-5)
    for t in range(5, 20):  # from then on the same direction as Adam's, shorter
        shorter = rectification(0.98, t) * (adam[t - 1] - adam[t - 2])
        np.testing.assert_allclose(ours[t - 1] - ours[t - 2], shorter, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(np.diff(ours[500:], axis=0), np.diff(adam[500:], axis=0), atol=2e-4)


def test_without_memory_of_squares_it_stays_momentum():
    """ρ_∞ = 4 for β2 = 0.6: the variance is never tractable."""
    assert all(rectification(0.6, t) is None for t in range(1, 500))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"beta1": 1.0}, "`beta1` must be in [0, 1), but is 1.0"),
        ({"beta2": 1.0}, "`beta2` must be in [0, 1), but is 1.0"),
        ({"epsilon": 0.0}, "`epsilon` must be positive, but is 0.0"),
    ],
)
def test_bad_options(options, text):
    with pytest.raises(ValueError) as caught:
        RAdam(**options)
    assert str(caught.value) == text
