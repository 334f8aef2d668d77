import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite
from paddle_tfm_plugins.position.cope import CoPE

DECODER = LayerSite("decoder", "self", 0, 2, 2)


def at(*positions):
    return paddle.to_tensor([positions])


def test_half_precision_counts_in_single():
    encoding = CoPE(4, 600, DECODER)
    q = k = paddle.full([1, 1, 600, 4], 3.0, "bfloat16")
    encoding.table.set_value(np.arange(601, dtype="float32")[:, None] * np.ones((1, 4), "float32"))
    row = encoding.scores(q, k, at(599), at(*range(600))).numpy()[0, 0, -1]
    assert row[0] == pytest.approx(12 * 600, rel=1e-3)  # bfloat16 would stop counting at 256


def test_the_table_has_a_row_for_each_count_of_a_text():
    assert CoPE(4, 16, DECODER).table.shape == [17, 4] and CoPE(4, 16, DECODER, positions=64).table.shape == [64, 4]
