"""An LSTM in the place of attention: its state, and what it is made of."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import Geometry, LayerSite, PositionalEncoding, TokenInfo
from paddle_tfm_plugins.attention.recurrent import Recurrent

C = 6
ENCODER, DECODER, CROSS = LayerSite("encoder", "self", 0, 1, 1), LayerSite("decoder", "self", 0, 1, 1), LayerSite("decoder", "cross", 0, 1, 1)  # fmt: skip
rng = np.random.default_rng(0)


def redrawn(layer):
    for parameter in layer.parameters():
        drawn = rng.normal(0, 0.7, parameter.shape)
        parameter.set_value(paddle.to_tensor(drawn.astype(str(parameter.dtype).removeprefix("paddle."))))
    return layer


def made(site, **options):
    return redrawn(Recurrent(C, site=site, **options))


def text(*shape):
    x = paddle.to_tensor(rng.normal(size=shape).astype("float32"))
    x.stop_gradient = False
    return x


def at(x, valid=None, start=0):
    positions = paddle.arange(start, start + x.shape[1]).unsqueeze(0)
    valid = np.ones(x.shape[:2], bool) if valid is None else np.asarray(valid, bool)
    return TokenInfo(PositionalEncoding(), positions, paddle.to_tensor(valid))


# -------------------------------------------------------------------------------------------------------- state


def test_the_state_has_one_size_however_long_the_output_is():
    attention, state = made(DECODER, hidden=5), None
    for t in range(6):
        x = text(2, 1, C)
        new = attention.project(x, at(x, start=t))
        state = new if state is None else state.extend(new)
        if t:
            assert [part.shape for part in (*state.last, state.outputs)] == [[2, 5], [2, 5], [2, 1, 5]]


def test_a_longer_text_in_the_encoder_is_read_anew():
    attention, x = made(ENCODER), text(2, 5, C)
    first, second = (attention.project(part, at(part)) for part in (x[:, :2], x[:, 2:]))
    whole, both = attention.project(x, at(x)).read(), first.extend(second).read()
    np.testing.assert_array_equal(both.outputs.numpy(), whole.outputs.numpy())
    rows = paddle.to_tensor([1, 1, 0])
    picked = attention.project(x, at(x)).select(rows).read().outputs
    np.testing.assert_allclose(picked.numpy(), whole.outputs.index_select(rows).numpy(), rtol=1e-5, atol=1e-7)


# --------------------------------------------------------------------------------------------- what it is made of


def test_the_halves_of_the_encoder_are_as_wide_together_as_the_decoder():
    assert [tuple(p.shape) for p in Recurrent(C, site=ENCODER).ahead.parameters()] == [(4, 3, 6), (4, 3, 3), (12,)]
    assert [tuple(p.shape) for p in Recurrent(C, site=DECODER).ahead.parameters()] == [(4, 6, 6), (4, 6, 6), (24,)]
    for site in (ENCODER, DECODER):
        assert tuple(Recurrent(C, site=site, hidden=10).output.weight.shape) == (10, C)
    assert Recurrent.geometry(C, 2) == Geometry(1, 1, C) and Recurrent.geometry(C, 2, hidden=10) == Geometry(1, 1, 10)
    assert Recurrent.supports == {"embed"}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"site": CROSS}, "it reads one text in its order, and cannot attend to another"),
        ({"site": DECODER, "hidden": 0}, "`hidden` must be at least 1, but is 0"),
        ({"site": ENCODER, "hidden": 5}, "`hidden` must be even where a text is read in two directions, but is 5"),
    ],
)
def test_what_cannot_be_is_refused_by_a_sentence(options, sentence):
    with pytest.raises(ValueError) as error:
        Recurrent(C, **options)
    assert str(error.value) == sentence
