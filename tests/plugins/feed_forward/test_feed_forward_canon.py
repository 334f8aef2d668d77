"""Sublayers that read the inputs before their tokens: what decoding keeps for them, and padding before a text. The formulas
stand under tests/references."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.feed_forward.canon import Canon
from paddle_tfm_plugins.feed_forward.relu import ReLU
from paddle_tfm_plugins.feed_forward.token_shift import TokenShift

B, T, C, F = 2, 6, 8, 12
CANON = "model.feed_forward={name: canon, inner: relu, kernel: 3}"
BOTH = ["model.attention={self: canon, cross: multihead}", CANON]


@pytest.mark.parametrize(
    ("overrides", "kept"),
    [([], {}), ([CANON], {"feed_forward": 2}), (["model.feed_forward=token_shift"], {"feed_forward": 1}),
     (BOTH, {"self": 3, "feed_forward": 2})],
)  # fmt: skip
def test_decoding_keeps_as_many_inputs_as_are_read(make_model, make_batch, overrides, kept):
    model, batch = make_model(*overrides), make_batch()
    model.eval()
    state, rows = model.start(model.encode(batch.source, batch.source_valid)), batch.source.shape[0]
    for chunk in (1, 1, 4):
        _, state = model.decode(paddle.full([rows, chunk], 5, "int64"), state)
        for layer in state.layers:
            shapes = {name: tuple(inputs.shape) for name, inputs in layer.before.items()}
            assert shapes == {name: (rows, reach, 16) for name, reach in kept.items()}
    picked = state.select(paddle.to_tensor([1, 0, 1]))
    for layer, chosen in zip(state.layers, picked.layers):
        for name, inputs in layer.before.items():
            np.testing.assert_array_equal(chosen.before[name].numpy(), inputs.numpy()[[1, 0, 1]])


@pytest.mark.parametrize("make", [lambda: Canon(C, ReLU(C, F)), lambda: TokenShift(C, F)])
def test_padding_before_a_text_is_nothing(make):
    layer = make()
    x = paddle.randn([B, T, C])

    def out(first, valid):
        info = TokenInfo(PositionalEncoding(), paddle.arange(first, T).unsqueeze(0), paddle.to_tensor(valid)[:, first:])
        return layer(x[:, first:], info, Tap()).numpy()

    valid = np.ones([B, T], bool)
    valid[:, :2] = False
    np.testing.assert_allclose(out(0, valid)[:, 2:], out(2, valid), rtol=1e-5, atol=1e-6)
    assert np.abs(out(0, np.ones([B, T], bool))[:, 2] - out(2, valid)[:, 0]).max() > 1e-3  # tokens there are read
