import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.position.transformer_xl import TransformerXL


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def tensors(*arrays):
    return [paddle.to_tensor(array) for array in arrays]


@pytest.fixture
def encoding(float64):
    made = TransformerXL(6, 2, 3)
    for seed, parameter in enumerate(made.parameters()):
        parameter.set_value(draw(*parameter.shape, seed=10 + seed))
    return made


def test_a_broken_line_of_positions_costs_no_more_than_its_pairs(encoding):
    """Two positions a billion apart: there is no table of all distances between."""
    far = [[0, 1_000_000_000]]
    q, k = tensors(draw(1, 2, 2, 3), draw(1, 2, 2, 3))
    assert np.isfinite(encoding.scores(q, k, *tensors(far, far)).numpy()).all()
