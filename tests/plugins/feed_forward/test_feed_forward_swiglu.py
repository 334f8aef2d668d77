"""The gated feed-forward sublayer against its formula, and its number of weights."""

import numpy as np
import paddle

from paddle_tfm.protocols import PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.feed_forward.relu import ReLU
from paddle_tfm_plugins.feed_forward.swiglu import SwiGLU


def test_it_is_the_formula():
    feed_forward, rng = SwiGLU(d_model=6, d_ff=10), np.random.default_rng(0)
    x = rng.normal(size=(2, 3, 6)).astype("float32")
    for parameter in feed_forward.parameters():
        parameter.set_value(rng.normal(size=parameter.shape).astype("float32"))
    gate, up = (x @ part.weight.numpy() + part.bias.numpy() for part in (feed_forward.gate, feed_forward.up))
    expected = gate / (1 + np.exp(-gate)) * up @ feed_forward.output.weight.numpy() + feed_forward.output.bias.numpy()
    here = TokenInfo(PositionalEncoding(), paddle.arange(3).unsqueeze(0), paddle.ones([2, 3], "bool"))
    np.testing.assert_allclose(feed_forward(paddle.to_tensor(x), here, Tap()).numpy(), expected, rtol=1e-4, atol=1e-4)


def test_equal_parameters_means_as_many_weights_as_two_matrices():
    def weights(feed_forward):
        return sum(parameter.size for parameter in feed_forward.parameters())

    two = weights(ReLU(64, 256, bias=False))
    assert SwiGLU(d_model=64, d_ff=256, equal_parameters=True).output.weight.shape == [170, 64]
    assert 0.99 * two < weights(SwiGLU(d_model=64, d_ff=256, bias=False, equal_parameters=True)) <= two
    assert weights(SwiGLU(d_model=64, d_ff=256, bias=False)) == 1.5 * two
