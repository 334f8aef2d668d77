"""One head: what it refuses."""

import pytest

from paddle_tfm_plugins.attention.single_head import SingleHead


def test_it_refuses_terms_on_the_values_and_has_no_place_for_an_inner_norm():
    assert SingleHead.supports == {"embed", "rotate", "bias", "scores"}
    with pytest.raises(TypeError):
        SingleHead(6, 0.0, inner_norm=lambda width: None)
