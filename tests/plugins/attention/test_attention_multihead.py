"""Multi-head attention: what is dropped, and every way of an encoding."""

import numpy as np
import paddle

from paddle_tfm.protocols import Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.multihead import MultiHead

B, T, S, C, H, D = 2, 3, 4, 6, 2, 3


class EveryWay(PositionalEncoding):
    """Acts in all ways at once, each a formula that NumPy repeats; `scores` is not linear in q, as Transformer-XL's."""

    def query(self, q, positions):
        return q * (1.0 + 0.1 * positions.astype("float32")).unsqueeze([1, 3])

    def key(self, k, positions):
        return k * (1.0 - 0.05 * positions.astype("float32")).unsqueeze([1, 3])

    @staticmethod
    def apart(q_positions, k_positions):
        return (q_positions.unsqueeze(2) - k_positions.unsqueeze(1)).astype("float32").unsqueeze(1)

    def bias(self, q_positions, k_positions):
        return -0.3 * self.apart(q_positions, k_positions).abs()

    def scores(self, q, k, q_positions, k_positions):
        return (q.sum(-1, keepdim=True) + k.sum(-1).unsqueeze(2) + 1.0) * self.apart(q_positions, k_positions)

    def values(self, weights, q_positions, k_positions):
        gathered = (weights * self.apart(q_positions, k_positions)).sum(-1, keepdim=True)
        return gathered.expand([*weights.shape[:3], D])


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


def test_it_accepts_every_way_of_an_encoding():
    assert EveryWay().uses() | {"embed"} == MultiHead.supports
