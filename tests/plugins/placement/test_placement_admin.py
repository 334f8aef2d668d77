"""Admin's residual weights: trained after they are set, and a profile of another stack."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite, Norm, PositionalEncoding, Profile, TokenInfo
from paddle_tfm_plugins.placement.admin import Admin


class Same(Norm):
    def forward(self, x, valid=None, positions=None):
        return x


def stack(layers=2):
    return [
        Admin(
            sites=[LayerSite("encoder", name, i, layers, 1) for name in ("self", "feed_forward")],
            norm=lambda site, width: Same(),
            d_model=3,
            dropout=0.0,
        )
        for i in range(layers)
    ]


def test_omega_weighs_the_residual_and_is_trained():
    (placement,) = stack(1)
    Admin.calibrate([placement], Profile(4.0, [5.0, 0.0]))
    x = paddle.ones([1, 2, 3])
    here = TokenInfo(PositionalEncoding(), paddle.arange(2).unsqueeze(0), paddle.ones([1, 2], "bool"))
    out = placement(x, [lambda y: y * 10.0, lambda y: y * 0.0], here)
    np.testing.assert_allclose(out.numpy(), np.full((1, 2, 3), (1 * 1 + 10) * 3.0), rtol=1e-6)
    out.sum().backward()
    assert all(not omega.stop_gradient and np.abs(omega.grad.numpy()).min() > 0 for omega in placement.omegas)
    assert set(placement.state_dict()) == {"omegas.0", "omegas.1"}


def test_a_profile_of_another_stack_is_refused():
    with pytest.raises(ValueError) as error:
        Admin.calibrate(stack(), Profile(1.0, [1.0, 1.0, 1.0]))
    assert str(error.value) == "`profile` must have a variance for each of the 4 sublayers, but has 3"
