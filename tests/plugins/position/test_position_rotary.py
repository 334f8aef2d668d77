import math

import numpy as np
import paddle
import pytest

from paddle_tfm_plugins.position.rotary import Rotary


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def rotated(x, positions, base=10000.0):
    """Each pair of neighbours times e^(i p θ), with Python's complex numbers."""
    y, width = np.empty_like(x), x.shape[-1]
    positions = np.broadcast_to(positions, [x.shape[0], x.shape[2]])
    for b, h, t, i in np.ndindex(*x.shape[:3], width // 2):
        angle = positions[b, t] * base ** (-2 * i / width)
        z = complex(x[b, h, t, 2 * i], x[b, h, t, 2 * i + 1]) * complex(math.cos(angle), math.sin(angle))
        y[b, h, t, 2 * i], y[b, h, t, 2 * i + 1] = z.real, z.imag
    return y


@pytest.mark.parametrize(("head_dim", "fraction", "width"), [(8, 0.25, 2), (8, 0.5, 4), (80, 0.4, 32), (6, 1.0, 6)])
def test_a_fraction_of_the_channels_turns_as_a_head_of_that_width(head_dim, fraction, width):
    x, positions = draw(2, 3, 4, head_dim), [[0, 3, 4, 900]]
    y = Rotary(head_dim, fraction=fraction).key(paddle.to_tensor(x), paddle.to_tensor(positions)).numpy()
    np.testing.assert_allclose(y[..., :width], rotated(x[..., :width], positions), atol=1e-9)
    np.testing.assert_array_equal(y[..., width:], x[..., width:])


def test_ntk_aware_scaling_slows_the_slowest_pair_by_the_factor_and_the_fastest_not_at_all():
    """2309.00071, section 3.1: the base is chosen so that the last pair is interpolated by s."""
    ratio = (Rotary(64, ntk_factor=8.0).frequency / Rotary(64).frequency).numpy()
    assert ratio[0] == 1.0 and ratio[-1] == pytest.approx(1 / 8)
    assert (np.diff(ratio) < 0).all()
    assert (Rotary(64, fraction=0.5, ntk_factor=8.0).frequency / Rotary(32).frequency).numpy()[-1] == pytest.approx(
        1 / 8
    )


def test_contract():
    assert Rotary(4).uses() == {"rotate"}
    assert not Rotary(4).state_dict()
    with pytest.raises(ValueError, match="`head_dim` must be even, but is 7"):
        Rotary(7)
    with pytest.raises(ValueError, match="`base` must be positive, but is -1"):
        Rotary(4, base=-1.0)
    with pytest.raises(ValueError, match="`base` must be positive, but is -5"):  # the one that was set, not the scaled
        Rotary(8, base=-5.0, ntk_factor=2.0)
    with pytest.raises(ValueError, match=r"`fraction` must let an even number of channels turn, but 0\.4 of 8 is 3"):
        Rotary(8, fraction=0.4)
    with pytest.raises(ValueError, match=r"`fraction` must be in \(0, 1\], but is 1.5"):
        Rotary(8, fraction=1.5)
    with pytest.raises(ValueError, match="there must be two, but there is one"):
        Rotary(2, ntk_factor=2.0)
    with pytest.raises(ValueError, match=r"`ntk_factor` must be at least 1, but is 0\.5"):
        Rotary(8, ntk_factor=0.5)
