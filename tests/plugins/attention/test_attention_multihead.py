"""Multi-head attention: what is dropped."""

import numpy as np
import paddle

from paddle_tfm.protocols import Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.multihead import MultiHead


def test_dropout_falls_on_the_weights():
    """With one key the only weight is 1: dropout of a half makes it 0 or 2 and the output that many times the value."""
    paddle.seed(3)
    attention = MultiHead(2, 2, 0.5, bias=False)
    x, here = (
        paddle.ones([64, 1, 2]),
        TokenInfo(PositionalEncoding(), paddle.zeros([1, 1], "int64"), paddle.ones([64, 1], "bool")),
    )
    attention.output.weight.set_value(paddle.eye(2))
    attention.value.weight.set_value(paddle.eye(2))
    kv, mask, tap = attention.project(x, here), Mask(here.positions, here.positions, here.valid, False), Tap(True)
    attention.train()
    assert set(np.unique(attention(x, kv, here, mask, tap).numpy())) == {0.0, 2.0}
    assert (tap.recorded[0][1].numpy() == 1.0).all()  # what is observed are the weights before dropout
    attention.eval()
    assert (attention(x, kv, here, mask, Tap()).numpy() == 1.0).all()
