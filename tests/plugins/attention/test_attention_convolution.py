"""A convolution: which neighbours it reaches, and what decoding has to keep."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention.convolution import Convolution

C, H = 6, 2
ENCODER, DECODER, CROSS = LayerSite("encoder", "self", 0, 1, 1), LayerSite("decoder", "self", 0, 1, 1), LayerSite("decoder", "cross", 0, 1, 1)  # fmt: skip
both_sites = pytest.mark.parametrize("site", [ENCODER, DECODER], ids=str)
both_kinds = pytest.mark.parametrize("dynamic", [False, True], ids=["trained", "predicted"])
rng = np.random.default_rng(0)


def made(site=ENCODER, dropout=0.0, **options):
    attention = Convolution(C, H, dropout, site=site, **options)
    for parameter in attention.parameters():
        drawn = rng.normal(0, 0.7, parameter.shape)
        parameter.set_value(paddle.to_tensor(drawn.astype(str(parameter.dtype).removeprefix("paddle."))))
    attention.eval()
    return attention


def open_wide(attention):
    """Gates of 1, and identity in and out: what is left is the convolution."""
    for layer in (attention.value, attention.output):
        layer.weight.set_value(np.eye(C, dtype="float32"))
        layer.bias.set_value(np.zeros(C, "float32"))
    attention.gate.weight.set_value(np.zeros([C, C], "float32"))
    attention.gate.bias.set_value(np.full(C, 40.0, "float32"))
    return attention


def text(*shape):
    return paddle.to_tensor(rng.normal(size=shape).astype("float32"))


def at(x, positions=None, valid=None):
    positions = np.arange(x.shape[1])[None] if positions is None else np.asarray(positions)
    valid = np.ones(x.shape[:2], bool) if valid is None else np.asarray(valid, bool)
    return TokenInfo(PositionalEncoding(), paddle.to_tensor(positions), paddle.to_tensor(valid))


def look(attention, x, here=None):
    """Output and weights [B, H, T, T]."""
    here = at(x) if here is None else here
    tap = Tap(recording=True)
    mask = Mask(here.positions, here.positions, here.valid, attention.causal)
    out = attention(x, attention.project(x, here), here, mask, tap)
    ((name, weights),) = tap.recorded
    assert name.endswith("attention")
    return out.numpy(), weights.numpy()


@both_sites
@both_kinds
def test_neighbours_are_those_at_neighbouring_positions(site, dynamic):
    """Padding before, between and behind the tokens, which keep their positions, changes nothing; nor does it matter
    where a text begins."""
    attention, x, junk = made(site, kernel=3, dynamic=dynamic), text(1, 3, C), 30 * text(1, 1, C)
    out, _ = look(attention, x)
    spread = paddle.concat([junk, x[:, :1], junk, x[:, 1:], junk], 1)
    moved, _ = look(attention, spread, at(spread, [[9, 5, 7, 6, 7, 8]], [[0, 1, 0, 1, 1, 0]]))
    np.testing.assert_allclose(moved[:, [1, 3, 4]], out, rtol=1e-4, atol=1e-6)
    apart, _ = look(attention, x, at(x, [[0, 10, 20]]))
    alone = np.concatenate([look(attention, x[:, i : i + 1])[0] for i in range(3)], 1)
    np.testing.assert_allclose(apart, alone, rtol=1e-4, atol=1e-6)  # nobody within reach


@both_kinds
def test_decoding_keeps_as_many_tokens_as_a_kernel_reaches_back(dynamic):
    attention, x, rows = made(DECODER, kernel=4, dynamic=dynamic), text(3, 9, C), paddle.to_tensor([2, 0, 0, 1])
    full, _ = look(attention, x)
    for chunks in ([1] * 9, [2, 3, 4], [6, 1, 2]):
        state, start = None, 0
        for size in chunks:
            part = x[:, start : start + size]
            here = at(part, [np.arange(start, start + size)])
            new = attention.project(part, here)
            state = new if state is None else state.extend(new)
            assert state.value.shape == [3, H, min(3, start) + size, C // H]
            mask = Mask(here.positions, paddle.arange(start + size).unsqueeze(0), paddle.ones([3, start + size]), True)
            out = attention(part, state, here, mask, Tap()).numpy()
            np.testing.assert_allclose(out, full[:, start : start + size], rtol=1e-4, atol=1e-5)
            chosen = attention(part.index_select(rows), state.select(rows), here, mask, Tap()).numpy()
            np.testing.assert_allclose(chosen, out[rows.numpy()], rtol=1e-5, atol=1e-6)
            start += size


def test_a_list_has_a_kernel_for_each_layer():
    sites = [LayerSite("encoder", "self", layer, 4, 4) for layer in range(4)]
    assert [Convolution(C, H, 0.0, site=site, kernel=[3, 5, 9]).kernel for site in sites] == [3, 5, 9, 9]
    assert Convolution(C, H, 0.0, kernel=[3, 5, 9]).kernel == 3


def test_dropout_falls_on_the_weights_of_each_token_apart():
    """A kernel that sees the token alone has the weight 1: dropout of a half makes it 0 or 2, for each token and head by
    itself."""
    paddle.seed(3)
    attention, x = open_wide(made(dropout=0.5, kernel=3)), paddle.ones([16, 8, C])
    attention.weight.set_value(np.tile(np.array([-100, 100, -100], "float32"), (H, 1)))
    attention.train()
    out, weights = (np.round(each, 6) for each in look(attention, x))  # Paddle's softmax leaves 1e-28 to the others
    per_head = out.reshape([16, 8, H, C // H])
    assert set(np.unique(out)) == {0.0, 2.0} and (np.ptp(per_head, -1) == 0).all()
    assert np.ptp(per_head[..., 0], 0).min() > 0  # no place is dropped or kept in all sentences
    assert set(np.unique(weights)) == {0.0, 1.0}  # what is observed are the weights before dropout
    attention.eval()
    assert (look(attention, x)[0] == 1.0).all()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"site": CROSS}, "a token of one text has no neighbours in another"),
        ({"kernel": 1}, "`kernel` must be in [2, 65536], but is 1"),
        ({"kernel": 4}, "`kernel` must be odd where it is centred, but is 4"),
        ({"kernel": [3, 4]}, "`kernel` must be odd where it is centred, but is 4"),
        ({"kernel": [], "site": DECODER}, "`kernel` must hold at least one width, but is empty"),
        ({"num_heads": 4}, "`num_heads` must divide `d_model`, but 4 does not divide 6"),
    ],
)
def test_what_cannot_be_is_refused_by_a_sentence(options, sentence):
    with pytest.raises(ValueError) as error:
        Convolution(**{"d_model": C, "num_heads": H, "dropout": 0.0, "site": ENCODER, **options})
    assert str(error.value) == sentence
