import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite
from paddle_tfm_plugins.position.cope import CoPE

DECODER = LayerSite("decoder", "self", 0, 2, 2)


def draw(*shape, seed=0):
    return paddle.to_tensor(np.random.default_rng(seed).normal(size=shape))


def at(*positions):
    return paddle.to_tensor([positions])


@pytest.fixture
def make(in_float64):
    def build(**options):
        encoding = CoPE(4, 16, DECODER, **options)
        encoding.table.set_value(draw(*encoding.table.shape, seed=9))
        return encoding

    return build


@pytest.fixture
def in_float64():
    before = paddle.get_default_dtype()
    paddle.set_default_dtype("float64")
    yield
    paddle.set_default_dtype(before)


def past(scores):
    return np.tril(np.ones(scores.shape[-2:], bool)) * scores


def test_where_all_gates_are_open_positions_are_distances(make):
    """sigmoid(q k) = 1: key j stands at i − j + 1, and where they are closed, everything at 0."""
    encoding, q = make(), paddle.ones([1, 1, 5, 4], "float64")
    for sign in (1, -1):
        scores = encoding.scores(q, sign * 1e3 * paddle.ones([1, 1, 5, 4], "float64"), at(*range(5)), at(*range(5)))
        row = encoding.table.numpy().sum(-1)
        expected = [[row[max(i - j + 1, 0) if sign > 0 else 0] for j in range(5)] for i in range(5)]
        np.testing.assert_allclose(scores.numpy()[0, 0], expected, atol=1e-9)


def test_later_words_do_not_count(make):
    encoding, q, k = make(), draw(2, 3, 6, 4), draw(2, 3, 6, 4, seed=1)
    other = paddle.concat([k[:, :, :4], 9 * draw(2, 3, 2, 4, seed=2)], 2)
    one, two = (encoding.scores(q, keys, at(*range(6)), at(*range(6))).numpy() for keys in (k, other))
    np.testing.assert_allclose(past(one)[:, :, :4], past(two)[:, :, :4], atol=1e-12)
    assert np.abs(one[:, :, 4:] - two[:, :, 4:]).max() > 0.1


def test_one_token_at_a_time_is_all_at_once(make):
    encoding, q, k = make(), draw(2, 3, 6, 4), draw(2, 3, 6, 4, seed=1)
    whole = encoding.scores(q, k, at(*range(6)), at(*range(6))).numpy()
    for i in range(6):
        step = encoding.scores(q[:, :, i : i + 1], k[:, :, : i + 1], at(i), at(*range(i + 1))).numpy()
        np.testing.assert_allclose(step[:, :, 0], whole[:, :, i, : i + 1], atol=1e-12)


def test_words_decide_where_a_word_stands(make):
    """The same word at the same distance, with other words between."""
    encoding, q, k = make(), draw(1, 1, 1, 4), draw(1, 1, 5, 4, seed=1)
    other = paddle.concat([k[:, :, :2], -k[:, :, 2:4], k[:, :, 4:]], 2)
    one, two = (encoding.scores(q, keys, at(4), at(*range(5))).numpy()[0, 0, 0] for keys in (k, other))
    assert np.abs(one[:2] - two[:2]).min() > 1e-3 and abs(one[4] - two[4]) < 1e-12


@pytest.mark.parametrize("positions", [None, 3])
def test_gradients(make, assert_gradients, positions):
    """Past counts that lie between rows; those that are cut off at the end of the table have none."""
    encoding, q, k = make(positions=positions), draw(1, 2, 4, 4), draw(1, 2, 4, 4, seed=1)

    def scores():
        return encoding.scores(q, k, at(*range(4)), at(*range(4)))

    assert_gradients(scores, q, k, encoding.table)


def test_contract():
    encoding = CoPE(4, 16, DECODER)
    assert encoding.uses() == {"scores"} and CoPE.per_layer
    assert encoding.table.shape == [17, 4] and not encoding.table.numpy().any() and encoding.table.keep_initial
    assert CoPE(4, 16, DECODER, positions=64).table.shape == [64, 4]
    with pytest.raises(ValueError, match=r"encoder\.self also looks ahead"):
        CoPE(4, 16, LayerSite("encoder", "self", 0, 2, 2))
    with pytest.raises(ValueError, match=r"`positions` must be in \[2, 1000000\], but is 1"):
        CoPE(4, 16, DECODER, positions=1)


def test_half_precision_counts_in_single(make):
    encoding = CoPE(4, 600, DECODER).to(dtype="float32")
    q = k = paddle.full([1, 1, 600, 4], 3.0, "bfloat16")
    encoding.table.set_value(np.arange(601, dtype="float32")[:, None] * np.ones((1, 4), "float32"))
    row = encoding.scores(q, k, at(599), at(*range(600))).numpy()[0, 0, -1]
    assert row[0] == pytest.approx(12 * 600, rel=1e-3)  # bfloat16 would stop counting at 256
