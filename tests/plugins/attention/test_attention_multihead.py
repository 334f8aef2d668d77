"""Multi-head attention against the formula of 2017, and every way of an encoding."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import KeyValue, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.multihead import MultiHead

B, T, S, C, H, D = 2, 3, 4, 6, 2, 3
rng = np.random.default_rng(0)


def linear(x, layer):
    return x @ layer.weight.numpy() + (0 if layer.bias is None else layer.bias.numpy())


def heads(x, count):
    return x.reshape(*x.shape[:2], count, -1).transpose(0, 2, 1, 3)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def made(count=H, **more):
    attention = MultiHead(C, count, 0.0, **more)
    for parameter in attention.parameters():
        parameter.set_value(rng.normal(0, 0.7, parameter.shape).astype("float32"))
    return attention


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


@pytest.mark.parametrize("encoding", [PositionalEncoding(), EveryWay()], ids=["none", "every way"])
@pytest.mark.parametrize("bias", [True, False])
def test_it_is_the_formula(encoding, bias):
    attention = made(bias=bias)
    x, source = rng.normal(size=(B, T, C)).astype("float32"), rng.normal(size=(B, S, C)).astype("float32")
    valid = np.array([[1, 1, 1, 1], [1, 1, 0, 1]], bool)
    i, j = np.arange(2, 2 + T)[None], np.arange(S)[None]
    q, k, v = (
        heads(linear(y, p), H) for y, p in ((x, attention.query), (source, attention.key), (source, attention.value))
    )
    apart = (i[:, :, None] - j[:, None, :])[:, None].astype("float32")
    extra = added = bias_term = 0.0
    if isinstance(encoding, EveryWay):
        q, k = q * (1 + 0.1 * i)[:, None, :, None], k * (1 - 0.05 * j)[:, None, :, None]
        extra, bias_term = (q.sum(-1)[..., None] + k.sum(-1)[:, :, None] + 1) * apart, -0.3 * np.abs(apart)
    scores = (q @ k.transpose(0, 1, 3, 2) + extra) / np.sqrt(D) + bias_term
    weights = softmax(np.where(valid[:, None, None], scores, -np.inf))
    if isinstance(encoding, EveryWay):
        added = (weights * apart).sum(-1)[..., None]
    expected = linear((weights @ v + added).transpose(0, 2, 1, 3).reshape(B, T, C), attention.output)

    i, j, valid = paddle.to_tensor(i), paddle.to_tensor(j), paddle.to_tensor(valid)
    kv = attention.project(paddle.to_tensor(source), TokenInfo(encoding, j, valid))
    tap = Tap(recording=True)
    here = TokenInfo(encoding, i, paddle.ones([B, T], "bool"))
    out = attention(paddle.to_tensor(x), kv, here, Mask(i, j, valid, False, encoding), tap)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)
    (name, seen), *others = tap.recorded
    assert name.endswith("attention") and not others
    np.testing.assert_allclose(seen.numpy(), weights, rtol=1e-4, atol=1e-6)


def test_a_soft_lookup():
    """Values 10, 5 and 2 with weights 0.6, 0.4 and 0 give 8."""
    attention = MultiHead(1, 1, 0.0, bias=False)
    for layer in (attention.query, attention.key, attention.value, attention.output):
        layer.weight.set_value(paddle.ones([1, 1]))

    class Weights(PositionalEncoding):
        def bias(self, q_positions, k_positions):
            return paddle.to_tensor([0.6, 0.4, 1e-30]).log().reshape([1, 1, 1, 3])

    one, three = paddle.zeros([1, 1], "int64"), paddle.arange(3).unsqueeze(0)
    here = TokenInfo(Weights(), one, paddle.ones([1, 1], "bool"))
    kv = KeyValue(paddle.zeros([1, 1, 3, 1]), paddle.to_tensor([10.0, 5.0, 2.0]).reshape([1, 1, 3, 1]))
    mask = Mask(one, three, paddle.ones([1, 3], "bool"), False, Weights())
    assert attention(paddle.zeros([1, 1, 1]), kv, here, mask, Tap()).item() == pytest.approx(8.0, abs=1e-5)


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


def test_it_has_four_projections_of_the_width_of_all_heads():
    shapes = {
        key: tuple(value.shape) for key, value in MultiHead(6, 4, 0.0, head_dim=5, bias=False).state_dict().items()
    }
    assert shapes == {"query.weight": (6, 20), "key.weight": (6, 20), "value.weight": (6, 20), "output.weight": (20, 6)}


def test_it_accepts_every_way_of_an_encoding():
    assert EveryWay().uses() | {"embed"} == MultiHead.supports
