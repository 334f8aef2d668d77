"""Sandwich-LN: what a branch adds has the size that its norm gives it, whatever the branch's weights."""

import numpy as np
import paddle

from paddle_tfm.protocols import LayerSite, PositionalEncoding, TokenInfo
from paddle_tfm_plugins.norm.layer import LayerNorm
from paddle_tfm_plugins.placement.sandwich import Sandwich

SITES = [LayerSite("decoder", name, 0, 1, 1) for name in ("self", "cross", "feed_forward")]
HERE = TokenInfo(PositionalEncoding(), paddle.arange(2).unsqueeze(0), paddle.ones([1, 2], "bool"))


def make(width):
    return Sandwich(sites=SITES, norm=lambda site, d_model: LayerNorm(d_model), d_model=width, dropout=0.0)


def branches(width, scale, dtype="float32"):
    rng = np.random.default_rng(0)
    matrices = [paddle.to_tensor((scale * rng.normal(size=(width, width))).astype(dtype)) for _ in SITES]
    return [lambda y, matrix=matrix: paddle.tanh(paddle.matmul(y, matrix)) for matrix in matrices]


def test_each_sublayer_has_two_norms_of_its_own():
    names = [
        f"{name}.{i}.{part}" for name in ("norms", "branch_norms") for i in range(3) for part in ("weight", "bias")
    ]
    assert sorted(make(4).state_dict()) == sorted(names)


def test_every_branch_adds_a_vector_of_the_size_that_its_norm_gives():
    width, placement = 16, make(16)
    placement.branch_norms[1].weight.set_value(paddle.full([width], 3.0))
    x, sizes = paddle.randn([1, 2, width]), []
    for i, branch in enumerate(branches(width, 50.0)):
        out = placement.wrap(i, x, lambda y, branch=branch: 1e3 * branch(y), HERE)
        sizes.append(np.linalg.norm((out - x).numpy(), axis=-1))
    np.testing.assert_allclose(sizes, np.sqrt(width) * np.array([[[1.0, 1.0]], [[3.0, 3.0]], [[1.0, 1.0]]]), rtol=1e-4)


def test_gradients_by_finite_differences(float64, assert_gradients):
    placement, x = make(4), paddle.to_tensor(np.random.default_rng(1).normal(size=(1, 2, 4)))
    for i, parameter in enumerate(placement.parameters()):
        parameter.set_value(np.random.default_rng(i).normal(1.0, 0.3, parameter.shape))
    parts = branches(4, 0.5, "float64")
    assert_gradients(lambda: placement(x, parts, HERE), x, *placement.parameters())
