import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite
from paddle_tfm_plugins.position.t5 import T5

ENCODER = LayerSite("encoder", "self", 0, 2, 2)
DECODER = LayerSite("decoder", "self", 0, 2, 2)
CROSS = LayerSite("decoder", "cross", 0, 2, 2)

# 32 buckets, 128: the least distance of each bucket that holds more than one. Both ways, 16 buckets a direction: from 8
# on they grow by 16^(1/8) = sqrt(2); one way, from 16 on, by 8^(1/16).
BORDERS = {
    ENCODER: [8, 12, 16, 23, 32, 46, 64, 91],
    DECODER: [16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113],
}


def row(*positions):
    return paddle.to_tensor([positions])


def buckets_of(encoding, distances):
    """The row of the table that each distance j − i is given."""
    rows = encoding.table.shape[0]
    encoding.table.set_value(np.arange(rows, dtype=np.float32)[:, None].repeat(encoding.table.shape[1], 1))
    bias = encoding.bias(row(1000), row(*(1000 + d for d in distances))).numpy()
    return bias[0, 0, 0].astype(int)


@pytest.mark.parametrize("site", [ENCODER, DECODER], ids=str)
def test_known_borders(site):
    distances, first = range(200), BORDERS[site][0]
    expected = [d if d < first else first - 1 + sum(d >= border for border in BORDERS[site]) for d in distances]
    np.testing.assert_array_equal(buckets_of(T5(2, site), [-d for d in distances]), expected)


def test_directions_have_buckets_of_their_own_where_both_are_seen():
    for site in (ENCODER, CROSS):
        back, ahead = (buckets_of(T5(2, site), sign * np.arange(1, 200)) for sign in (-1, 1))
        np.testing.assert_array_equal(ahead, back + 16)
        assert back.max() == 15 and ahead.max() == 31
    np.testing.assert_array_equal(buckets_of(T5(2, DECODER), [0, 1, 5, 900]), 0)  # never seen: the bucket of itself
