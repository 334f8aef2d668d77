"""A window over positions: who is seen, by whom, and what the mask costs."""

import numpy as np
import paddle
import pytest

from paddle_tfm.errors import RecipeError
from paddle_tfm.protocols import LayerSite, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.local import Local
from paddle_tfm_plugins.attention.multihead import MultiHead
from paddle_tfm_plugins.position.alibi import ALiBi

C, H = 8, 2
ENCODER = LayerSite("encoder", "self", 0, 1, 1)
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


def seen(positions, valid, window, causal):
    """bool [B, Tq, Tk] in loops."""
    batch, length = valid.shape
    visible = np.zeros([batch, length, length], bool)
    for b, i, j in np.ndindex(batch, length, length):
        p = positions[b % len(positions)]
        visible[b, i, j] = valid[b, j] and abs(p[i] - p[j]) <= window and (not causal or p[j] <= p[i])
    return visible


POSITIONS = [
    np.arange(7)[None],
    np.array([[0, 1, 4, 5, 6, 30, 31]]),
    np.array([[0, 1, 2, 3, 4, 5, 6], [3, 7, 8, 9, 13, 14, 99]]),
]


@pytest.mark.parametrize("window", [1, 2, 5])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("positions", POSITIONS, ids=["in a row", "with gaps", "of each sentence"])
def test_it_sees_the_positions_in_the_window(positions, causal, window):
    valid = np.array([[True] * 7, [True] * 7])
    valid[1, 4] = False
    near, everything = made(window), made(window, MultiHead)
    ours, full = (weights(attention, positions, valid, causal) for attention in (near, everything))
    allowed = seen(positions, valid, window, causal)[:, None]
    some = allowed.any(-1, keepdims=True)  # padding far from all real positions sees nothing
    expected = np.where(allowed, full, 0) / np.where(some, np.where(allowed, full, 0).sum(-1, keepdims=True), 1)
    np.testing.assert_allclose(np.where(some, ours, 0), expected, rtol=1e-4, atol=1e-6)
    assert (ours[np.broadcast_to(some & ~allowed, ours.shape)] < 1e-20).all()
    mine = np.einsum("bhii->bhi", ours)
    assert (mine[np.broadcast_to(valid[:, None], mine.shape)] > 1e-6).all()  # a query sees itself


def test_a_step_of_decoding_looks_no_further_back():
    valid = np.ones([1, 7], bool)
    attention, positions = made(2), POSITIONS[1]
    full = weights(attention, positions, valid, True)
    for queries in (1, 3):
        part = weights(attention, positions, valid, True, queries)
        np.testing.assert_allclose(part, full[:, :, -queries:], rtol=1e-5, atol=1e-7)
    assert (weights(attention, positions, valid, True, 1)[0, :, 0, :5] < 1e-20).all()


def test_an_encodings_bias_stays_on_what_is_seen():
    valid, encoding = np.ones([1, 7], bool), ALiBi(H, ENCODER)
    ours, full = (weights(made(2, cls), POSITIONS[0], valid, False, None, encoding) for cls in (Local, MultiHead))
    kept = np.where(seen(POSITIONS[0], valid, 2, False), full, 0)
    np.testing.assert_allclose(ours, kept / kept.sum(-1, keepdims=True), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("causal", [True, False])
def test_a_window_over_everything_is_multihead(causal):
    valid = np.array([[True] * 7, [True] * 4 + [False] * 3])
    ours, full = (weights(made(6, cls), POSITIONS[0], valid, causal) for cls in (Local, MultiHead))
    np.testing.assert_array_equal(ours, full)


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


@pytest.mark.parametrize("layers, reach", [(1, 2), (2, 4), (3, 6)])
def test_layers_reach_as_many_windows(make_model, make_batch, layers, reach):
    """2004.05150, section 3.1: with l layers of window w the receptive field is l · w."""
    chosen = "model.attention={encoder: {name: local, window: 2}, decoder: multihead}"
    model, length = make_model(chosen, f"model.encoder_layers={layers}"), 9
    batch = make_batch((length,), (2,))
    x = paddle.to_tensor(rng.normal(size=(1, length, 16)).astype("float32"))
    x.stop_gradient = False
    out, _ = model.encoder(x, batch.source_valid, Tap())
    (gradient,) = paddle.grad(out[0, 4].sum() + out[0, 4, 0], x)
    heard = np.abs(gradient.numpy()[0]).max(-1) > 1e-20
    np.testing.assert_array_equal(heard, np.abs(np.arange(length) - 4) <= reach)


def test_a_recipe_that_puts_it_across_two_texts_is_refused(make_model):
    with pytest.raises(RecipeError, match="'local' refuses: a window needs one text"):
        make_model("model.attention=local")


def test_gradients(float64, assert_gradients):
    attention = Local(d_model=4, num_heads=2, dropout=0.0, window=1)
    x = paddle.to_tensor(rng.normal(size=(2, 5, 4)))
    here = TokenInfo(
        PositionalEncoding(), paddle.arange(5).unsqueeze(0), paddle.to_tensor([[1] * 5, [1] * 4 + [0]], "bool")
    )
    mask = Mask(here.positions, here.positions, here.valid, True)
    assert_gradients(lambda: attention(x, attention.project(x, here), here, mask, Tap()), x, *attention.parameters())
