import pytest

from paddle_tfm.protocols import LayerSite
from paddle_tfm_plugins.position.alibi import ALiBi

ENCODER = LayerSite("encoder", "self", 0, 2, 2)


def test_contract():
    assert ALiBi(4, ENCODER).uses() == {"bias"}
    assert not ALiBi(4, ENCODER).per_layer and not ALiBi(4, ENCODER).state_dict()
    with pytest.raises(ValueError, match="`num_heads` must be at least 1, but is 0"):
        ALiBi(0, ENCODER)
