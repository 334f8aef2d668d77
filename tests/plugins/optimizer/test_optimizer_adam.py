"""Adam and AdamW against the papers' rules in NumPy."""

import paddle_tfm  # noqa: F401  before Paddle: it sets the environment that Paddle reads

# isort: split
import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.optimizer.adam import Adam
from paddle_tfm_plugins.optimizer.adamw import AdamW

RATES = [0.01, 0.1, 0.03]


def start():
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype("float32") for shape in ([3, 4], [4], [2, 3, 2])]


def gradients(step):
    rng = np.random.default_rng(100 + step)
    return [rng.normal(size=value.shape).astype("float32") for value in start()]


def by_paddle(optimizer):
    tensors = [
        paddle.create_parameter(list(value.shape), "float32", default_initializer=paddle.nn.initializer.Assign(value))
        for value in start()
    ]
    update = optimizer.create(tensors)
    for step, rate in enumerate(RATES):
        for tensor, gradient in zip(tensors, gradients(step)):
            tensor.grad = paddle.to_tensor(gradient)
        update.set_lr(rate)
        update.step()
        update.clear_grad()
    return [tensor.numpy() for tensor in tensors]


def by_hand(beta1, beta2, epsilon, weight_decay=0.0):
    weights = [value.astype("float64") for value in start()]
    first, second = [0.0] * 3, [0.0] * 3
    for step, rate in enumerate(RATES):
        for i, g in enumerate(gradients(step)):
            g = g.astype("float64")
            first[i] = beta1 * first[i] + (1 - beta1) * g
            second[i] = beta2 * second[i] + (1 - beta2) * g**2
            if weights[i].ndim >= 2:
                weights[i] = weights[i] * (1 - rate * weight_decay)
            fair1, fair2 = first[i] / (1 - beta1 ** (step + 1)), second[i] / (1 - beta2 ** (step + 1))
            weights[i] = weights[i] - rate * fair1 / (np.sqrt(fair2) + epsilon)
    return weights


def assert_equal(ours, expected):
    for a, b in zip(ours, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-6, rtol=2e-6)


def test_adam():
    assert_equal(by_paddle(Adam()), by_hand(0.9, 0.98, 1e-9))


def test_adam_options():
    assert_equal(by_paddle(Adam(beta1=0.5, beta2=0.7, epsilon=1e-3)), by_hand(0.5, 0.7, 1e-3))


def test_adamw():
    assert_equal(by_paddle(AdamW()), by_hand(0.9, 0.98, 1e-9, 0.01))
    assert_equal(by_paddle(AdamW(weight_decay=2.0)), by_hand(0.9, 0.98, 1e-9, 2.0))


def test_adamw_without_decay_is_adam():
    assert_equal(by_paddle(AdamW(weight_decay=0.0)), by_paddle(Adam()))


def test_adamw_spares_vectors():
    plain, decayed = by_paddle(AdamW(weight_decay=0.0)), by_paddle(AdamW(weight_decay=1.0))
    assert np.array_equal(plain[1], decayed[1])
    assert not np.allclose(plain[0], decayed[0]) and not np.allclose(plain[2], decayed[2])


@pytest.mark.parametrize("make", [Adam, AdamW])
def test_a_parameter_may_have_its_first_gradient_later(make):
    """As that of an expert which no token chose at first."""
    early, late = (paddle.create_parameter([2, 2], "float32") for _ in range(2))
    before = late.numpy()
    update = make(**({"weight_decay": 0.0} if make is AdamW else {})).create([early, late])
    for step in range(3):
        early.grad = paddle.ones([2, 2])
        if step == 2:
            late.grad = paddle.ones([2, 2])
        update.set_lr(0.5)
        update.step()
        update.clear_grad()
        if step < 2:
            assert np.array_equal(late.numpy(), before)
    np.testing.assert_allclose(late.numpy(), before - 0.5, atol=1e-5)  # its own first step is a step of size `rate`


@pytest.mark.parametrize("make", [Adam, AdamW])
def test_nothing_moves_before_a_rate_is_set(make):
    weight = paddle.create_parameter([2, 2], "float32")
    before = weight.numpy()
    update = make().create(parameter for parameter in [weight])
    weight.grad = paddle.ones([2, 2])
    update.step()
    assert np.array_equal(weight.numpy(), before)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Adam(beta1=1.0), "`beta1` must be in [0, 1), but is 1.0"),
        (lambda: AdamW(beta2=-0.1), "`beta2` must be in [0, 1), but is -0.1"),
        (lambda: Adam(epsilon=0.0), "`epsilon` must be positive, but is 0.0"),
        (lambda: AdamW(weight_decay=-1.0), "`weight_decay` must not be negative, but is -1.0"),
    ],
)
def test_bad_options(make, text):
    with pytest.raises(ValueError) as caught:
        make()
    assert str(caught.value) == text


@pytest.mark.parametrize(
    "steps_with_gradients",  # for each step, which of three parameters have a gradient
    [["110", "111", "011", "111"], ["111", "111", "101", "111"], ["001", "100", "111", "010"]],
    ids=["late", "missed", "by turns"],
)
def test_a_parameter_without_a_gradient_stays_and_counts_no_step(steps_with_gradients):
    start, rate = [1.0, -2.0, 0.5], 0.1
    tensors = [
        paddle.create_parameter([2], "float32", default_initializer=paddle.nn.initializer.Constant(x)) for x in start
    ]
    update = Adam(0.9, 0.98, 1e-9).create(tensors)
    weights, first, second, steps = list(start), [0.0] * 3, [0.0] * 3, [0] * 3
    for number, present in enumerate(steps_with_gradients):
        for i in range(3):
            if present[i] == "0":
                continue
            g = 0.3 * (i + 1) - 0.2 * number
            tensors[i].grad = paddle.full([2], g)
            steps[i] += 1
            first[i] = 0.9 * first[i] + 0.1 * g
            second[i] = 0.98 * second[i] + 0.02 * g**2
            fair1, fair2 = first[i] / (1 - 0.9 ** steps[i]), second[i] / (1 - 0.98 ** steps[i])
            weights[i] -= rate * fair1 / (np.sqrt(fair2) + 1e-9)
        update.set_lr(rate)
        update.step()
        update.clear_grad(set_to_zero=False)
        np.testing.assert_allclose([float(tensor[0]) for tensor in tensors], weights, rtol=1e-5)


def test_all_parameters_are_updated_in_one_call(monkeypatch):
    calls = []
    real = paddle._C_ops.merged_adam_
    monkeypatch.setattr(
        paddle._C_ops, "merged_adam_", lambda *arguments: calls.append(len(arguments[0])) or real(*arguments)
    )
    assert_equal(by_paddle(Adam(0.9, 0.98, 1e-9)), by_hand(0.9, 0.98, 1e-9))
    assert calls == [3, 3, 3]
