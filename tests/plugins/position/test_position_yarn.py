import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.position.rotary import Rotary
from paddle_tfm_plugins.position.yarn import YaRN


def draw(*shape, seed=0):
    return paddle.to_tensor(np.random.default_rng(seed).normal(size=shape))


def scores(encoding, shift=0, factor=1):
    q_positions, k_positions = (paddle.arange(n).unsqueeze(0) * factor + shift for n in (4, 5))
    q, k = encoding.query(draw(2, 3, 4, 8), q_positions), encoding.key(draw(2, 3, 5, 8, seed=1), k_positions)
    return paddle.matmul(q, k, transpose_y=True).numpy()


def test_a_factor_of_one_is_rotary():
    np.testing.assert_allclose(scores(YaRN(8, 512, factor=1.0)), scores(Rotary(8)), atol=1e-9)
    np.testing.assert_allclose(scores(YaRN(8, 512, 1.0, base=50.0)), scores(Rotary(8, 50.0)), atol=1e-9)


@pytest.mark.parametrize("by_turns", [False, True])
@pytest.mark.parametrize("length", [1, 5, 7, 100, 4096])
def test_a_pair_is_slowed_by_no_less_than_a_faster_one(length, by_turns):
    ratio = (
        YaRN(16, 100, 8.0, trained_length=length, by_turns=by_turns).frequency.numpy() / Rotary(16).frequency.numpy()
    )
    assert (np.diff(ratio) <= 1e-12).all() and ratio.max() <= 1.0 + 1e-12 and ratio.min() >= 1 / 8 - 1e-12


def test_the_trained_length_is_the_factors_part_of_the_longest():
    given, own = YaRN(64, 4096, 4.0, trained_length=1024), YaRN(64, 4096, 4.0)
    np.testing.assert_array_equal(given.frequency.numpy(), own.frequency.numpy())
    assert np.abs(own.frequency.numpy() - YaRN(64, 8192, 4.0).frequency.numpy()).max() > 1e-6
