import pytest

from paddle_tfm_plugins.position.scaled_sinusoidal import ScaledSinusoidal


def test_contract():
    encoding = ScaledSinusoidal(4)
    assert encoding.uses() == {"embed"}
    assert list(encoding.state_dict()) == ["alpha"] and encoding.alpha.numpy() == [1.0]
    assert encoding.alpha.keep_initial
    with pytest.raises(ValueError, match="`base` must be positive, but is 0"):
        ScaledSinusoidal(4, base=0.0)
