"""GEGLU and ReGLU: SwiGLU with another gate, and their number of weights."""

import math

import pytest

from paddle_tfm_plugins.feed_forward.geglu import GEGLU
from paddle_tfm_plugins.feed_forward.reglu import ReGLU
from paddle_tfm_plugins.feed_forward.relu import ReLU
from paddle_tfm_plugins.feed_forward.swiglu import SwiGLU

GATES = {
    SwiGLU: lambda x: x / (1 + math.exp(-x)),
    GEGLU: lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    ReGLU: lambda x: max(0.0, x),
}


def test_state_has_the_same_names_whichever_gate_it_is():
    names = {f"{part}.{kind}" for part in ("gate", "up", "output") for kind in ("weight", "bias")}
    assert all(set(cls(d_model=4, d_ff=5).state_dict()) == names for cls in GATES)


@pytest.mark.parametrize("cls", [GEGLU, ReGLU])
def test_equal_parameters_means_as_many_weights_as_two_matrices(cls):
    def weights(feed_forward):
        return sum(parameter.size for parameter in feed_forward.parameters())

    two = weights(ReLU(64, 256, bias=False))
    assert 0.99 * two < weights(cls(d_model=64, d_ff=256, bias=False, equal_parameters=True)) <= two
    assert weights(cls(d_model=64, d_ff=256, bias=False)) == 1.5 * two
