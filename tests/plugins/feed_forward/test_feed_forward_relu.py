"""The feed-forward sublayer of 2017 against its formula."""

import numpy as np
import paddle

from paddle_tfm.protocols import PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.feed_forward.relu import ReLU


def test_it_is_the_formula():
    feed_forward, x = ReLU(6, 10), np.random.default_rng(0).normal(size=(2, 3, 6)).astype("float32")
    w1, b1, w2, b2 = (feed_forward.state_dict()[f"{a}.{b}"] for a in ("inner", "output") for b in ("weight", "bias"))
    b1.set_value(paddle.randn([10]))
    b2.set_value(paddle.randn([6]))
    here = TokenInfo(PositionalEncoding(), paddle.arange(3).unsqueeze(0), paddle.ones([2, 3], "bool"))
    expected = np.maximum(x @ w1.numpy() + b1.numpy(), 0) @ w2.numpy() + b2.numpy()
    np.testing.assert_allclose(feed_forward(paddle.to_tensor(x), here, Tap()).numpy(), expected, rtol=1e-4, atol=1e-5)
