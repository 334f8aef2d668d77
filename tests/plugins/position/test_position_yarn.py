import numpy as np
import pytest

from paddle_tfm_plugins.position.rotary import Rotary
from paddle_tfm_plugins.position.yarn import YaRN


@pytest.mark.parametrize("length", [1, 5, 7, 100, 4096])
def test_a_pair_is_slowed_by_no_less_than_a_faster_one(length):
    ratio = YaRN(16, 100, 8.0, trained_length=length).frequency.numpy() / Rotary(16).frequency.numpy()
    assert (np.diff(ratio) <= 1e-12).all() and ratio.max() <= 1.0 + 1e-12 and ratio.min() >= 1 / 8 - 1e-12
