"""Lion: every weight moves by the rate."""

import paddle_tfm  # noqa: F401  before Paddle: it sets the environment that Paddle reads

# isort: split
import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.optimizer.lion import Lion


def parameter(value):
    made = paddle.create_parameter(list(np.shape(value)), "float32")
    made.set_value(np.asarray(value, dtype="float32"))
    return made


def step(update, weight, gradient, rate=0.5):
    weight.grad = paddle.to_tensor(np.asarray(gradient, dtype="float32"))
    update.set_lr(rate)
    update.step()
    update.clear_grad(set_to_zero=False)


def test_every_weight_moves_by_the_rate_whatever_its_gradient():
    weight = parameter([1.0, 1.0, 1.0, 1.0])
    update = Lion().create([weight])
    step(update, weight, [1e-12, -3.0, 1e6, 0.0])
    np.testing.assert_array_equal(weight.numpy(), [0.5, 1.5, 0.5, 1.0])


def test_the_direction_and_the_momentum_have_betas_of_their_own():
    """m = 0.01 after a gradient of 1; the next, −0.05, turns 0.9 m − 0.1 · 0.05 > 0 around only if β1 is small."""
    for beta1, expected in ((0.9, 1.0 - 0.5 - 0.5), (0.5, 1.0 - 0.5 + 0.5)):
        weight = parameter([1.0])
        update = Lion(beta1=beta1, beta2=0.99).create([weight])
        step(update, weight, [1.0])
        step(update, weight, [-0.05])
        np.testing.assert_allclose(weight.numpy(), [expected], atol=1e-6)


def test_one_moment_is_kept():
    weight = parameter(np.ones([2, 3]))
    update = Lion().create([weight])
    step(update, weight, np.ones([2, 3]))
    state = update.state_dict()
    assert sorted(state) == [f"{weight.name}.momentum", f"{weight.name}.updates"]
    assert state[f"{weight.name}.momentum"].shape == [2, 3]


def test_the_decay_is_apart_from_the_sign_and_spares_vectors():
    matrix, vector = parameter([[2.0, 2.0]]), parameter([2.0, 2.0])
    update = Lion(weight_decay=0.1).create([matrix, vector])
    matrix.grad, vector.grad = paddle.zeros([1, 2]), paddle.zeros([2])
    update.set_lr(0.5)
    update.step()
    np.testing.assert_allclose(matrix.numpy(), [[1.9, 1.9]], rtol=1e-6)
    np.testing.assert_array_equal(vector.numpy(), [2.0, 2.0])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"beta1": 1.0}, "`beta1` must be in [0, 1), but is 1.0"),
        ({"beta2": -0.1}, "`beta2` must be in [0, 1), but is -0.1"),
        ({"weight_decay": -1.0}, "`weight_decay` must not be negative, but is -1.0"),
    ],
)
def test_bad_options(options, text):
    with pytest.raises(ValueError) as caught:
        Lion(**options)
    assert str(caught.value) == text
