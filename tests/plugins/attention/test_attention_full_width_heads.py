"""Heads as wide as the model, each written out by itself."""

import numpy as np
import paddle

from paddle_tfm.protocols import Geometry, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.full_width_heads import FullWidthHeads


def test_it_is_a_sum_of_full_attentions():
    rng, width, count = np.random.default_rng(0), 4, 3
    attention = FullWidthHeads(d_model=width, num_heads=count, dropout=0.0, bias=False)
    x = rng.normal(size=(2, 5, width)).astype("float32")
    expected = 0.0
    for h in range(count):
        cut = slice(h * width, (h + 1) * width)
        q, k, v = (x @ layer.weight.numpy()[:, cut] for layer in (attention.query, attention.key, attention.value))
        weights = np.exp(q @ k.transpose(0, 2, 1) / np.sqrt(width))
        expected += weights / weights.sum(-1, keepdims=True) @ v @ attention.output.weight.numpy()[cut]

    here = TokenInfo(PositionalEncoding(), paddle.arange(5).unsqueeze(0), paddle.ones([2, 5], "bool"))
    mask = Mask(here.positions, here.positions, here.valid, False)
    out = attention(paddle.to_tensor(x), attention.project(paddle.to_tensor(x), here), here, mask, Tap())
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_any_number_of_heads_goes_with_any_width():
    shapes = {
        key: tuple(value.shape)
        for key, value in FullWidthHeads(d_model=5, num_heads=3, dropout=0.0, bias=False).state_dict().items()
    }
    assert shapes == {"query.weight": (5, 15), "key.weight": (5, 15), "value.weight": (5, 15), "output.weight": (15, 5)}
    assert FullWidthHeads.geometry(5, 3) == Geometry(3, 3, 5)
