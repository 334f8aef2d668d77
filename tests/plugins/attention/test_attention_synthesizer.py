"""Synthesized weights: positions beyond the last, and what is dropped."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.synthesizer import Synthesizer

C, H, LONGEST = 6, 2, 8
ENCODER, DECODER, CROSS = LayerSite("encoder", "self", 0, 1, 1), LayerSite("decoder", "self", 0, 1, 1), LayerSite("decoder", "cross", 0, 1, 1)  # fmt: skip
MODES = [{}, {"mode": "random"}, {"mode": "random", "rank": 3}]
modes = pytest.mark.parametrize("options", MODES, ids=str)
rng = np.random.default_rng(0)


def made(site=ENCODER, dropout=0.0, **options):
    attention = Synthesizer(C, H, dropout, LONGEST, site=site, **options)
    for parameter in attention.parameters():
        drawn = rng.normal(0, 0.7, parameter.shape)
        parameter.set_value(paddle.to_tensor(drawn.astype(str(parameter.dtype).removeprefix("paddle."))))
    attention.eval()
    return attention


def text(*shape):
    return paddle.to_tensor(rng.normal(size=shape).astype("float32"))


def at(x, positions=None, valid=None, encoding=None):
    length = x.shape[1]
    positions = np.arange(length)[None] if positions is None else np.asarray(positions)
    valid = np.ones(x.shape[:2], bool) if valid is None else np.asarray(valid, bool)
    encoding = PositionalEncoding() if encoding is None else encoding
    return TokenInfo(encoding, paddle.to_tensor(positions), paddle.to_tensor(valid))


def look(attention, x, here, causal=False):
    """Output and weights [B, H, T, T]."""
    tap = Tap(recording=True)
    mask = Mask(here.positions, here.positions, here.valid, causal, here.encoding)
    out = attention(x, attention.project(x, here), here, mask, tap)
    ((name, weights),) = tap.recorded
    assert name.endswith("attention")
    return out.numpy(), weights.numpy()


@modes
def test_beyond_max_length_the_last_position_serves(options):
    attention, x = made(**options), text(1, 3, C)
    far, _ = look(attention, x, at(x, [[LONGEST - 2, LONGEST - 1, LONGEST]]))
    further, _ = look(attention, x, at(x, [[LONGEST - 2, LONGEST + 5, 1000]]))
    np.testing.assert_array_equal(further, far)


def test_dropout_falls_on_the_weights():
    """Two keys, a value of 1 for each: dropout of a half makes of their weights' sum 0, 2, or one weight doubled, and
    the same of it for all channels of a head."""
    paddle.seed(3)
    attention = made(dropout=0.5, bias=False)
    x = paddle.ones([64, 2, C])
    for layer in (attention.value, attention.output):
        layer.weight.set_value(np.eye(C, dtype="float32"))
    attention.train()
    out, weights = look(attention, x, at(x))
    heads = out.reshape([64, 2, H, C // H])
    assert (np.ptp(heads, -1) == 0).all()
    for i, h in np.ndindex(2, H):
        one, other = weights[0, h, i]  # what is observed are the weights before dropout
        expected = np.array([0.0, 2 * one, 2 * other, 2.0])
        nearest = np.abs(heads[:, i, h, :1] - expected)
        assert (nearest.min(1) < 1e-5).all() and len(set(nearest.argmin(1))) == 4
    attention.eval()
    np.testing.assert_allclose(look(attention, x, at(x))[0], 1.0, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"site": CROSS}, "its weights belong to pairs of positions of one text, which says nothing about a source and its target"),
        ({"mode": "sparse"}, "`mode` must be one of dense, random, but is 'sparse'"),
        ({"hidden": 0}, "`hidden` must be at least 1, but is 0"),
        ({"mode": "random", "rank": 0}, "`rank` must be at least 1, but is 0"),
        ({"rank": 2}, "`rank` has no meaning with `mode` dense; leave it out"),
        ({"mode": "random", "hidden": 2}, "`hidden` has no meaning with `mode` random; leave it out"),
        ({"num_heads": 4}, "`num_heads` must divide `d_model`, but 4 does not divide 6"),
        ({"max_length": 0}, "`max_length` must be at least 1, but is 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_a_sentence(options, sentence):
    with pytest.raises(ValueError) as error:
        Synthesizer(**{"d_model": C, "num_heads": H, "dropout": 0.0, "max_length": LONGEST, **options})
    assert str(error.value) == sentence
