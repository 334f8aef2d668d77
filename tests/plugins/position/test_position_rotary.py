import numpy as np
import pytest

from paddle_tfm_plugins.position.rotary import Rotary


def test_ntk_aware_scaling_slows_the_slowest_pair_by_the_factor_and_the_fastest_not_at_all():
    """2309.00071, section 3.1: the base is chosen so that the last pair is interpolated by s."""
    ratio = (Rotary(64, ntk_factor=8.0).frequency / Rotary(64).frequency).numpy()
    assert ratio[0] == 1.0 and ratio[-1] == pytest.approx(1 / 8)
    assert (np.diff(ratio) < 0).all()
    assert (Rotary(64, fraction=0.5, ntk_factor=8.0).frequency / Rotary(32).frequency).numpy()[-1] == pytest.approx(
        1 / 8
    )
