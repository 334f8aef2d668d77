import numpy as np
import paddle

from paddle_tfm_plugins.norm.batch_per_position import BatchNormPerPosition

LENGTHS = np.array([[5], [2], [4], [3]])
VALID = np.arange(5) < LENGTHS  # [4, 5]: 4 4 3 2 1 real tokens at positions 0 … 4
POSITIONS = np.arange(5)[None]


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(2.0, 3.0, shape).astype(paddle.get_default_dtype())


def trained(max_length=8, **options):
    """A norm with a weight, a bias and running values that are not those at the start."""
    norm = BatchNormPerPosition(3, max_length, **options)
    for i, tensor in enumerate([norm.weight, norm.bias, norm.running_mean, norm.running_variance]):
        tensor.set_value(np.abs(draw(*tensor.shape, seed=i + 1)))
    return norm


def call(norm, x, valid=VALID, positions=POSITIONS):
    return norm(*(paddle.to_tensor(array) for array in (x, valid, positions)))


def test_no_mask_means_all_real():
    x = draw(4, 5, 3)
    y = trained()(paddle.to_tensor(x), None, paddle.to_tensor(POSITIONS)).numpy()
    np.testing.assert_array_equal(y, call(trained(), x, np.ones([4, 5], bool)).numpy())
