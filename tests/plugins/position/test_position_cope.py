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
