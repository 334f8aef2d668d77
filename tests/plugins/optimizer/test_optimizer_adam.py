"""Adam and AdamW: options that are refused, and all parameters in one call."""

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


def test_all_parameters_are_updated_in_one_call(monkeypatch):
    calls = []
    real = paddle._C_ops.merged_adam_
    monkeypatch.setattr(
        paddle._C_ops, "merged_adam_", lambda *arguments: calls.append(len(arguments[0])) or real(*arguments)
    )
    assert_equal(by_paddle(Adam(0.9, 0.98, 1e-9)), by_hand(0.9, 0.98, 1e-9))
    assert calls == [3, 3, 3]
