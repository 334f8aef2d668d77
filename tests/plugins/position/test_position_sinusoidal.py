import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.position.sinusoidal import Sinusoidal


def table(positions, d_model, base=10000.0):
    """The encoding of int64 [B, T] alone: what is added to zeros."""
    positions = np.atleast_2d(positions)
    zeros = paddle.zeros([*positions.shape, d_model], "float64")
    return Sinusoidal(d_model, base).embed(zeros, paddle.to_tensor(positions)).numpy()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_are_those_of_the_formula(dtype):
    """Single positions and several, negative ones and far ones."""
    encoding = Sinusoidal(6)
    for positions in (
        [[3]],
        [[0, 1, 2]],
        [[70]],
        [[2], [5]],
        [[200]],
        [[-1]],
        [[0]],
        [[4_095]],
        [[4_096]],
        [[100_003, 1]],
    ):
        angle = np.array(positions)[..., None] / 10000.0 ** (np.array([0, 0, 2, 2, 4, 4]) / 6)
        expected = np.where(np.arange(6) % 2, np.cos(angle), np.sin(angle))
        x = paddle.ones([2, len(positions[0]), 6], dtype)
        y = encoding.embed(x, paddle.to_tensor(positions))
        assert y.dtype == x.dtype
        np.testing.assert_allclose(y.numpy(), 1.0 + np.broadcast_to(expected, y.shape), atol=1e-6)
