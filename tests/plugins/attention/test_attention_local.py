"""A window over positions: where it stands, and what the mask costs."""

import numpy as np
import paddle
import pytest

from paddle_tfm.errors import RecipeError
from paddle_tfm.protocols import Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.local import Local

C, H = 8, 2
rng = np.random.default_rng(0)


def made(window, cls=Local, **more):
    attention, rng = (
        cls(d_model=C, num_heads=H, dropout=0.0, **more, **({"window": window} if cls is Local else {})),
        np.random.default_rng(1),
    )
    for parameter in attention.parameters():
        parameter.set_value(rng.normal(0, 0.7, parameter.shape).astype("float32"))
    return attention


def weights(attention, positions, valid, causal, queries=None, encoding=None):
    """What each position gives to each, [B, H, Tq, Tk]; `queries`: only the last so many look."""
    batch, length = valid.shape
    encoding, positions, valid = encoding or PositionalEncoding(), paddle.to_tensor(positions), paddle.to_tensor(valid)
    x = paddle.to_tensor(np.random.default_rng(2).normal(size=(batch, length, C)).astype("float32"))
    kv = attention.project(x, TokenInfo(encoding, positions, valid))
    last = slice(length - (queries or length), length)
    here, tap = TokenInfo(encoding, positions[:, last], valid[:, last]), Tap(recording=True)
    attention(x[:, last], kv, here, Mask(here.positions, positions, valid, causal, encoding), tap)
    return tap.recorded[0][1].numpy()


POSITIONS = [
    np.arange(7)[None],
    np.array([[0, 1, 4, 5, 6, 30, 31]]),
    np.array([[0, 1, 2, 3, 4, 5, 6], [3, 7, 8, 9, 13, 14, 99]]),
]


def test_a_step_of_decoding_looks_no_further_back():
    valid = np.ones([1, 7], bool)
    attention, positions = made(2), POSITIONS[1]
    full = weights(attention, positions, valid, True)
    for queries in (1, 3):
        part = weights(attention, positions, valid, True, queries)
        np.testing.assert_allclose(part, full[:, :, -queries:], rtol=1e-5, atol=1e-7)
    assert (weights(attention, positions, valid, True, 1)[0, :, 0, :5] < 1e-20).all()


def test_layers_that_share_a_mask_share_its_restriction(monkeypatch):
    """One mask a pass: with three layers of one window and one of another, there are two restrictions."""
    calls, restricted = [], Mask.restricted
    monkeypatch.setattr(
        Mask, "restricted", lambda *arguments: calls.append(restricted(*arguments)) or restricted(*arguments)
    )
    x, valid = paddle.zeros([1, 5, C]), paddle.ones([1, 5], "bool")
    info = TokenInfo(PositionalEncoding(), paddle.arange(5).unsqueeze(0), valid)
    mask = Mask(info.positions, info.positions, valid, True)
    for attention in (made(2), made(2), made(3), made(2)):
        attention(x, attention.project(x, info), info, mask, Tap())
    assert [mask is calls[0] for mask in calls] == [True, True, False, True]


def test_a_recipe_that_puts_it_across_two_texts_is_refused(make_model):
    with pytest.raises(RecipeError, match="'local' refuses: a window needs one text"):
        make_model("model.attention=local")
