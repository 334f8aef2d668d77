"""LayerScale: a small learned factor for each channel of each branch."""

import numpy as np
import pytest

from paddle_tfm.protocols import LayerSite, Norm
from paddle_tfm_plugins.placement.layer_scale import LayerScale


@pytest.mark.parametrize("depth, initial", [(6, 0.1), (18, 0.1), (19, 1e-5), (24, 1e-5), (25, 1e-6), (36, 1e-6)])
def test_scales_start_by_the_depth_of_their_stack(depth, initial):
    """2103.17239, section 2: 0.1 until depth 18, 1e-5 for depth 24, 1e-6 for deeper networks."""
    givens = {"norm": lambda site, width: Norm(), "d_model": 3, "dropout": 0.0}
    for stack, layers in (("encoder", (depth, 100)), ("decoder", (100, depth))):
        placement = LayerScale(sites=[LayerSite(stack, "self", 0, *layers)], **givens)
        np.testing.assert_allclose(placement.scales[0].numpy(), np.full(3, initial), rtol=1e-6)
