"""The squared ReLU: zero on one side, a parabola on the other."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.feed_forward.relu_squared import ReLUSquared

HERE = TokenInfo(PositionalEncoding(), paddle.arange(3).unsqueeze(0), paddle.ones([2, 3], "bool"))


def make(dtype="float32", **options):
    feed_forward, rng = ReLUSquared(4, 5, **options), np.random.default_rng(0)
    for parameter in feed_forward.parameters():
        parameter.set_value(rng.normal(size=parameter.shape).astype(dtype))
    return feed_forward


def test_known_values():
    feed_forward = ReLUSquared(1, 1, bias=False)
    for parameter in feed_forward.parameters():
        parameter.set_value(paddle.ones_like(parameter))
    x = paddle.to_tensor([[-3.0, 0.0, 0.5], [1.0, 2.0, -1e-3]]).unsqueeze(-1)
    out = feed_forward(x, HERE, Tap()).squeeze(-1)
    np.testing.assert_allclose(out.numpy(), [[0.0, 0.0, 0.25], [1.0, 4.0, 0.0]], rtol=1e-6)


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_the_output_grows_with_the_square_of_the_input(factor):
    feed_forward, x = make(bias=False), paddle.randn([2, 3, 4])
    once, scaled = feed_forward(x, HERE, Tap()), feed_forward(x * factor, HERE, Tap())
    np.testing.assert_allclose(scaled.numpy(), factor**2 * once.numpy(), rtol=1e-4, atol=1e-5)


def test_gradients_by_finite_differences(float64, assert_gradients):
    feed_forward = make("float64")
    x = paddle.to_tensor(np.random.default_rng(1).normal(size=(2, 3, 4)))
    assert_gradients(lambda: feed_forward(x, HERE, Tap()), x, *feed_forward.parameters())
