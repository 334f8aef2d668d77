"""The initial scale that Sub-LayerNorm's paper derives."""

import math

import pytest

from paddle_tfm.protocols import LayerSite, Norm
from paddle_tfm_plugins.placement.sub_ln import SubLN


@pytest.mark.parametrize(
    ("stack", "encoder_layers", "decoder_layers", "squared"),
    [
        ("encoder", 6, 4, math.log(12) * math.log(12) / 3),
        ("encoder", 12, 0, math.log(24)),
        ("decoder", 6, 4, math.log(12)),
    ],
)
def test_the_gain_is_the_papers(stack, encoder_layers, decoder_layers, squared):
    sites = [LayerSite(stack, "self", 0, encoder_layers, decoder_layers)]
    arguments = {"sites": sites, "norm": lambda site, width: Norm(), "d_model": 4, "dropout": 0.0}
    assert SubLN(**arguments).branch_gain == pytest.approx(math.sqrt(squared))
    assert SubLN(**arguments, gain=False).branch_gain == 1.0
