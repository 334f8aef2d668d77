"""GEGLU and ReGLU: SwiGLU with another gate."""

import math

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.feed_forward.geglu import GEGLU
from paddle_tfm_plugins.feed_forward.reglu import ReGLU
from paddle_tfm_plugins.feed_forward.relu import ReLU
from paddle_tfm_plugins.feed_forward.swiglu import SwiGLU

HERE = TokenInfo(PositionalEncoding(), paddle.arange(3).unsqueeze(0), paddle.ones([2, 3], "bool"))
GATES = {
    SwiGLU: lambda x: x / (1 + math.exp(-x)),
    GEGLU: lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    ReGLU: lambda x: max(0.0, x),
}
every = pytest.mark.parametrize("cls", GATES)


def make(cls, dtype="float32", **options):
    feed_forward, rng = cls(d_model=4, d_ff=5, **options), np.random.default_rng(0)
    for parameter in feed_forward.parameters():
        parameter.set_value(rng.normal(size=parameter.shape).astype(dtype))
    return feed_forward


def single(cls):
    """One channel, all weights 1, no biases: gate(x) · x."""
    feed_forward = cls(d_model=1, d_ff=1, bias=False)
    for parameter in feed_forward.parameters():
        parameter.set_value(paddle.ones_like(parameter))
    return feed_forward


@every
def test_known_values(cls):
    values = [-3.0, -1.0, 0.0, 0.5, 2.0]
    x = paddle.to_tensor(values).reshape([1, 5, 1])
    info = TokenInfo(PositionalEncoding(), paddle.arange(5).unsqueeze(0), paddle.ones([1, 5], "bool"))
    expected = [GATES[cls](value) * value for value in values]
    np.testing.assert_allclose(single(cls)(x, info, Tap()).numpy().reshape(-1), expected, rtol=1e-5, atol=1e-6)


@every
def test_gradients_by_finite_differences(cls, float64, assert_gradients):
    feed_forward = make(cls, "float64")
    x = paddle.to_tensor(np.random.default_rng(1).normal(size=(2, 3, 4)))
    assert_gradients(lambda: feed_forward(x, HERE, Tap()), x, *feed_forward.parameters())


def test_a_closed_gate_of_reglu_lets_nothing_through():
    feed_forward = make(ReGLU)
    feed_forward.gate.weight.set_value(paddle.zeros([4, 5]))
    feed_forward.gate.bias.set_value(paddle.full([5], -1.0))
    out = feed_forward(paddle.randn([2, 3, 4]), HERE, Tap())
    np.testing.assert_array_equal(out.numpy(), np.broadcast_to(feed_forward.output.bias.numpy(), [2, 3, 4]))


def test_state_has_the_same_names_whichever_gate_it_is():
    names = {f"{part}.{kind}" for part in ("gate", "up", "output") for kind in ("weight", "bias")}
    assert all(set(cls(d_model=4, d_ff=5).state_dict()) == names for cls in GATES)


@pytest.mark.parametrize("cls", [GEGLU, ReGLU])
def test_equal_parameters_means_as_many_weights_as_two_matrices(cls):
    def weights(feed_forward):
        return sum(parameter.size for parameter in feed_forward.parameters())

    two = weights(ReLU(64, 256, bias=False))
    assert 0.99 * two < weights(cls(d_model=64, d_ff=256, bias=False, equal_parameters=True)) <= two
    assert weights(cls(d_model=64, d_ff=256, bias=False)) == 1.5 * two
