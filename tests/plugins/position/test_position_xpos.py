import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite, Mask
from paddle_tfm_plugins.position.xpos import XPos

DECODER = LayerSite("decoder", "self", 0, 2, 2)


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def row(*positions):
    return paddle.to_tensor([positions])


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
