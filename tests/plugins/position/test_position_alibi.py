import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite, Mask
from paddle_tfm_plugins.position.alibi import ALiBi

ENCODER = LayerSite("encoder", "self", 0, 2, 2)
DECODER = LayerSite("decoder", "self", 0, 2, 2)

# The paper, section 3: 1/2, 1/4, …, 1/256 for 8 heads; for n heads a sequence that starts at 2^(-8/n) with that ratio.
SLOPES = {
    1: [2**-8],
    2: [2**-4, 2**-8],
    6: [2 ** (-4 / 3), 2 ** (-8 / 3), 2**-4, 2 ** (-16 / 3), 2 ** (-20 / 3), 2**-8],
    8: [2**-1, 2**-2, 2**-3, 2**-4, 2**-5, 2**-6, 2**-7, 2**-8],
    16: [2 ** (-h / 2) for h in range(1, 17)],
}


def row(*positions):
    return paddle.to_tensor([positions])


@pytest.mark.parametrize("num_heads", SLOPES)
def test_slopes(num_heads):
    bias = ALiBi(num_heads, DECODER).bias(row(1), row(0)).numpy()  # a distance of 1
    np.testing.assert_allclose(-bias.reshape(-1), SLOPES[num_heads], rtol=1e-6)


@pytest.mark.parametrize("num_heads", range(1, 33))
def test_slopes_are_different_and_below_one(num_heads):
    slopes = ALiBi(num_heads, DECODER).slopes.numpy()
    assert len(set(slopes)) == num_heads and (slopes < 1).all() and (slopes > 0).all()


def test_both_ways_outside_causal_attention():
    bias = ALiBi(8, ENCODER).bias(row(0, 1, 2), row(0, 1, 2, 3)).numpy()
    distance = np.abs(np.arange(3)[:, None] - np.arange(4))
    assert bias.shape == (1, 8, 3, 4)
    np.testing.assert_allclose(bias[0, 1], -0.25 * distance)


def test_causal_attention_sees_the_same_before_the_query():
    positions = row(0, 1, 2, 3)
    both, causal = (ALiBi(4, site).bias(positions, positions).numpy() for site in (ENCODER, DECODER))
    np.testing.assert_array_equal(np.tril(both), np.tril(causal))
    mask = Mask(positions, positions, paddle.ones([1, 4], "bool"), True, ALiBi(4, DECODER)).dense().numpy()
    assert (mask[..., np.triu_indices(4, 1)[0], np.triu_indices(4, 1)[1]] < -1e8).all()


def test_positions_of_each_sentence():
    encoding, q, k = ALiBi(4, ENCODER), [[3], [10]], [[0, 3, 5], [9, 10, 20]]
    bias = encoding.bias(paddle.to_tensor(q), paddle.to_tensor(k)).numpy()
    for b in range(2):
        alone = encoding.bias(paddle.to_tensor(q[b : b + 1]), paddle.to_tensor(k[b : b + 1])).numpy()
        np.testing.assert_array_equal(bias[b : b + 1], alone)
    np.testing.assert_array_equal(encoding.bias(row(103), row(100, 103, 105)).numpy()[0], bias[0])  # only differences


def test_contract():
    assert ALiBi(4, ENCODER).uses() == {"bias"}
    assert not ALiBi(4, ENCODER).per_layer and not ALiBi(4, ENCODER).state_dict()
    with pytest.raises(ValueError, match="`num_heads` must be at least 1, but is 0"):
        ALiBi(0, ENCODER)
