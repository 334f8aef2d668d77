"""What the attention for a GPU drops, on a CPU. That it computes the formula: tests/conformance/test_kernels.py."""

import numpy as np
import paddle
import pytest

from paddle_tfm import randomness
from paddle_tfm.kernels import Mode, using
from paddle_tfm.layers import Dropout
from paddle_tfm.protocols import KeyValue, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention._dot_product import attend
from paddle_tfm_plugins.kernel.gpu import AttendByPaddle
from paddle_tfm_plugins.position.pope import PoPE


def test_its_own_draws_drop_as_many_and_are_those_of_the_step(rng):
    q, k = (paddle.to_tensor(rng.standard_normal((3, 4, 64, 8)).astype("float32")) for _ in range(2))
    kv = KeyValue(k, paddle.ones_like(k))  # the output is the sum of what is left
    at, valid, dropout = paddle.arange(64).unsqueeze(0), paddle.ones([3, 64], "bool"), Dropout(0.3)
    encoding, dropout.path = PositionalEncoding(), "encoder.0"
    given = [q, kv, TokenInfo(encoding, at, valid), Mask(at, at, valid, True, encoding), dropout, Tap()]
    sums = []
    for step in (1, 1, 2):
        with randomness.random_context(1, step), using(Mode("step"), {attend: AttendByPaddle()}):
            sums.append(attend(*given).numpy())
    np.testing.assert_array_equal(sums[0], sums[1])
    assert (sums[0] != sums[2]).any()
    assert sums[0].mean() == pytest.approx(1.0, abs=0.02) and sums[0].std() > 0.05


def test_the_scale_is_of_the_width_before_the_encoding(rng):
    """PoPE makes queries and keys twice as wide."""
    q, k, v = (paddle.to_tensor(rng.standard_normal((3, 4, 9, 8)).astype("float32")) for _ in range(3))
    at, encoding = paddle.arange(9).unsqueeze(0), PoPE(head_dim=8, num_heads=4)
    info, mask = TokenInfo(encoding, at, paddle.ones([3, 9], "bool")), Mask(at, at, paddle.ones([3, 9], "bool"), True)
    given = [q, KeyValue(encoding.key(k, at), v), info, mask, Dropout(0.0), Tap()]
    formula = attend(*given).numpy()
    with using(Mode("step"), {attend: AttendByPaddle()}):
        np.testing.assert_allclose(attend(*given).numpy(), formula, rtol=1e-5, atol=1e-6)
