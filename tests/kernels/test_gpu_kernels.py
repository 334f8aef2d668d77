"""The kernels for a GPU, where a CPU can compute them: values and gradients of the formula, and how many are dropped."""

import numpy as np
import paddle
import pytest

from paddle_tfm import randomness
from paddle_tfm.kernels import Mode, using
from paddle_tfm.layers import Dropout
from paddle_tfm.protocols import KeyValue, LayerSite, Mask, PositionalEncoding, Tap, TokenInfo
from paddle_tfm_plugins.attention._dot_product import attend
from paddle_tfm_plugins.kernel.gpu import AttendByPaddle
from paddle_tfm_plugins.position.alibi import ALiBi


def arguments(rng, heads, groups, queries, keys, encoding, rate=0.0):
    q, k, v = (
        paddle.to_tensor(rng.standard_normal(shape).astype("float32"), stop_gradient=False)
        for shape in ((3, heads, queries, 8), (3, groups, keys, 8), (3, groups, keys, 8))
    )
    valid = paddle.to_tensor(np.arange(keys) < np.array([[keys], [keys - 1], [2]]))
    at = paddle.arange(keys).unsqueeze(0)
    info = TokenInfo(encoding, at[:, :queries], valid[:, :queries])
    return [q, KeyValue(k, v), info, Mask(at[:, :queries], at, valid, queries == keys, encoding), Dropout(rate), Tap()]


@pytest.mark.parametrize(
    "encoding",
    [PositionalEncoding(), ALiBi(num_heads=4, site=LayerSite("encoder", "self", 0, 1, 1))],
    ids=["none", "bias"],
)
@pytest.mark.parametrize(("heads", "groups"), [(4, 4), (4, 2), (4, 1)])
@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (1, 6), (3, 6)])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_attention_of_paddle_is_the_formula(rng, encoding, heads, groups, queries, keys, scale):
    given = [*arguments(rng, heads, groups, queries, keys, encoding), scale]
    inputs, up = [given[0], given[1].key, given[1].value], paddle.randn([3, heads, queries, 8])
    with using(Mode("step"), {attend: AttendByPaddle()}):
        by_kernel = attend(*given)
    by_formula = attend.formula(*given)
    np.testing.assert_allclose(by_kernel.numpy(), by_formula.numpy(), rtol=1e-4, atol=1e-5)
    for one, other in zip(paddle.grad(by_kernel, inputs, up), paddle.grad(by_formula, inputs, up)):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-3, atol=1e-4)


def test_its_own_draws_drop_as_many_and_are_those_of_the_step(rng):
    given = arguments(rng, 4, 4, 64, 64, PositionalEncoding(), rate=0.3)
    given[1] = KeyValue(given[1].key, paddle.ones_like(given[1].value))  # then the output is the sum of what is left
    given[4].path = "encoder.0"
    sums = []
    for step in (1, 1, 2):
        with randomness.random_context(1, step), using(Mode("step"), {attend: AttendByPaddle()}):
            sums.append(attend(*given).numpy())
    np.testing.assert_array_equal(sums[0], sums[1])
    assert (sums[0] != sums[2]).any()
    assert sums[0].mean() == pytest.approx(1.0, abs=0.02) and sums[0].std() > 0.05
