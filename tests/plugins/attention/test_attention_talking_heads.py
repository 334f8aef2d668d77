"""Heads that mix scores and weights: what is dropped."""

import numpy as np
import paddle

from paddle_tfm.protocols import Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.talking_heads import TalkingHeads


def test_dropout_falls_on_the_mixed_weights():
    """Values are ones: a head's output is the sum of the weights that were kept, each 0 or twice what was observed."""
    paddle.seed(3)
    attention, tap = TalkingHeads(d_model=2, num_heads=2, dropout=0.5, bias=False), Tap(recording=True)
    attention.mix_weights.set_value(paddle.to_tensor([[2.0, 1.0], [1.0, 2.0]]))
    x, valid = paddle.ones([64, 1, 2]), paddle.ones([64, 1], "bool")
    for layer in (attention.value, attention.output):
        layer.weight.set_value(paddle.eye(2))
    here = TokenInfo(PositionalEncoding(), paddle.zeros([1, 1], "int64"), valid)
    attention.train()
    out = attention(x, attention.project(x, here), here, Mask(here.positions, here.positions, valid, False), tap)
    assert (tap.recorded[0][1].numpy() == 3.0).all()
    assert set(np.unique(out.numpy())) == {0.0, 6.0}
