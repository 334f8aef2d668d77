import cmath

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite, Mask
from paddle_tfm_plugins.position.rotary import Rotary
from paddle_tfm_plugins.position.xpos import XPos

ENCODER = LayerSite("encoder", "self", 0, 2, 2)
DECODER = LayerSite("decoder", "self", 0, 2, 2)
CROSS = LayerSite("decoder", "cross", 0, 2, 2)


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def row(*positions):
    return paddle.to_tensor([positions])


def scores(encoding, q, k, q_positions, k_positions):
    """Products of all queries with all keys, [B, H, Tq, Tk]."""
    q, k = (paddle.to_tensor(x) for x in (q, k))
    turned = encoding.query(q, row(*q_positions)), encoding.key(k, row(*k_positions))
    return paddle.matmul(*turned, transpose_y=True).numpy()


@pytest.mark.parametrize("options", [{}, {"scale_base": 7.0}, {"scale_base": 3.0, "gamma": 1.5, "base": 50.0}])
def test_a_score_is_turned_and_faded_by_the_difference(options):
    """Σ_i Re(q_i conj(k_i) ζ_i^((n − m) / s) e^(i (n − m) θ_i)), with Python's complex numbers."""
    s, gamma, base, width = options.get("scale_base", 512.0), options.get("gamma", 0.4), options.get("base", 1e4), 8
    q, k, at_q, at_k = draw(1, 1, 3, width), draw(1, 1, 4, width, seed=1), (3, 9, 200), (0, 1, 3, 190)
    expected = np.zeros([3, 4])
    for a, n in enumerate(at_q):
        for b, m in enumerate(at_k):
            for i in range(width // 2):
                zeta = (2 * i / width + gamma) / (1 + gamma)
                query = complex(*q[0, 0, a, 2 * i : 2 * i + 2])
                key = complex(*k[0, 0, b, 2 * i : 2 * i + 2])
                turn = cmath.exp(1j * (n - m) * base ** (-2 * i / width))
                expected[a, b] += (query * key.conjugate() * turn).real * zeta ** ((n - m) / s)
    past = np.array(at_q)[:, None] >= np.array(at_k)
    ours = scores(XPos(width, DECODER, **options), q, k, at_q, at_k)[0, 0]
    np.testing.assert_allclose(ours[past], expected[past], rtol=1e-9, atol=1e-9)


def test_fades_by_zeta_over_scale_base():
    """Beside rotary, the part of the first pair, whose ζ is γ / (1 + γ)."""
    ones = np.ones([1, 1, 1, 2])
    for distance, power in ((512, 1), (1024, 2), (5120, 10)):
        ratio = scores(XPos(2, DECODER), ones, ones, (distance,), (0,)) / scores(
            Rotary(2), ones, ones, (distance,), (0,)
        )
        assert ratio.item() == pytest.approx((0.4 / 1.4) ** power, rel=1e-9)


def test_near_positions_are_almost_rotary_and_slow_pairs_fade_less():
    q, k = draw(1, 2, 5, 8), draw(1, 2, 5, 8, seed=1)
    near = [scores(encoding, q, k, range(5), range(5)) for encoding in (XPos(8, DECODER), Rotary(8))]
    np.testing.assert_allclose(near[0], near[1], atol=0.05)
    assert np.abs(near[0] - near[1]).max() > 1e-4
    ones = np.ones([1, 1, 1, 8])
    keys = XPos(8, DECODER).key(paddle.to_tensor(ones), row(512)).numpy().reshape(4, 2)
    lengths = np.linalg.norm(keys, axis=1) / np.sqrt(2)
    np.testing.assert_allclose(lengths, 1.4 / (np.array([0, 0.25, 0.5, 0.75]) + 0.4), rtol=1e-12)


def test_scores_depend_on_differences_only():
    q, k = draw(1, 2, 4, 8), draw(1, 2, 5, 8, seed=1)
    encoding = XPos(8, DECODER)
    here = scores(encoding, q, k, range(4), range(5))
    for shift in (37, 5000, 14_000):
        there = scores(encoding, q, k, np.arange(4) + shift, np.arange(5) + shift)
        np.testing.assert_allclose(there, here, atol=1e-9)


@pytest.mark.parametrize("position", [0, 1000, 5000, 15_056, 15_057, 40_000, 3_000_000])
def test_finite_in_float32_as_far_as_you_like(position):
    """The weights of a query at `position`, cached keys from the start on, and the future hidden."""
    encoding = XPos(16, DECODER)
    q_at, k_at = row(position), row(0, position // 2, position, position + 1, position + 2000)
    q, k = (paddle.to_tensor(30 * draw(1, 2, n, 16, seed=n)).astype("float32") for n in (1, 5))
    raw = paddle.matmul(encoding.query(q, q_at), encoding.key(k, k_at), transpose_y=True)
    assert np.isfinite(raw.numpy()).all() and np.abs(raw.numpy()).max() < 1e6
    first = paddle.to_tensor([[0, position]])  # two queries, so that the mask is causal
    weights = paddle.nn.functional.softmax(
        raw.expand([1, 2, 2, 5]) + Mask(first, k_at, paddle.ones([1, 5], "bool"), True).dense(), -1
    )
    assert np.isfinite(weights.numpy()).all()
    np.testing.assert_allclose(weights.numpy()[0, :, 1, 3:], 0, atol=1e-20)


def test_reach_is_the_documented_one():
    assert XPos(8, DECODER).reach == 15_056
    assert XPos(8, DECODER, scale_base=256.0).reach == 7528
    key = XPos(8, DECODER).key(paddle.to_tensor(np.ones([1, 1, 3, 8])), row(15_056, 15_057, 90_000)).numpy()
    lengths = np.linalg.norm(key.reshape(3, 4, 2), axis=-1)[:, 0] / np.sqrt(2)
    assert 0.99e16 < lengths[0] <= 1e16
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-12)  # turned on, but no longer


def test_one_token_at_a_time_is_the_same():
    x, encoding = paddle.to_tensor(draw(2, 3, 6, 4)), XPos(4, DECODER, scale_base=5.0)
    for way in (encoding.query, encoding.key):
        whole = way(x, paddle.arange(6).unsqueeze(0)).numpy()
        pieces = [way(x[:, :, t : t + 1], paddle.to_tensor([[t]])).numpy() for t in range(6)]
        np.testing.assert_allclose(np.concatenate(pieces, 2), whole, atol=1e-12)


@pytest.mark.parametrize("positions", [[[0, 1, 5]], [[0, 1, 5], [2, 3, 4]]])
def test_gradients(assert_gradients, positions):
    x, encoding = paddle.to_tensor(draw(2, 2, 3, 4)), XPos(4, DECODER, scale_base=5.0)
    assert_gradients(lambda: encoding.query(x, paddle.to_tensor(positions)), x)
    x.clear_gradient()
    assert_gradients(lambda: encoding.key(x, paddle.to_tensor(positions)), x)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_dtype_stays(dtype):
    y = XPos(4, DECODER).key(paddle.to_tensor(draw(1, 2, 3, 4)).astype(dtype), row(0, 10, 5000))
    assert str(y.dtype) == f"paddle.{dtype}" and np.isfinite(y.astype("float32").numpy()).all()


def test_contract():
    assert XPos(4, DECODER).uses() == {"rotate"}
    assert not XPos(4, DECODER).state_dict()
    for site, name in ((ENCODER, "encoder.self"), (CROSS, "decoder.cross")):
        with pytest.raises(ValueError, match=f"grow towards the future, which {name} sees"):
            XPos(4, site)
    with pytest.raises(ValueError, match="`head_dim` must be even, but is 7"):
        XPos(7, DECODER)
    for name in ("base", "scale_base", "gamma"):
        with pytest.raises(ValueError, match=f"`{name}` must be positive, but is 0"):
            XPos(4, DECODER, **{name: 0.0})
