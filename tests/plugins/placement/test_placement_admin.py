"""Admin: a profile of another stack."""

import pytest

from paddle_tfm.protocols import LayerSite, Norm, Profile
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


def test_a_profile_of_another_stack_is_refused():
    with pytest.raises(ValueError) as error:
        Admin.calibrate(stack(), Profile(1.0, [1.0, 1.0, 1.0]))
    assert str(error.value) == "`profile` must have a variance for each of the 4 sublayers, but has 3"
