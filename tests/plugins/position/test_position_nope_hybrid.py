import pytest

from paddle_tfm import RecipeError, create_registry
from paddle_tfm.protocols import LayerSite
from paddle_tfm_plugins.position.nope_hybrid import NoPEHybrid
from paddle_tfm_plugins.position.sinusoidal import Sinusoidal


def site(layer):
    return LayerSite("decoder", "self", layer, 8, 8)


def test_llama_4s_layers():
    """`no_rope_layers` of its configuration, interval 4: 1, 1, 1, 0, 1, 1, 1, 0."""
    assert [int(bool(NoPEHybrid(4, site(layer)).uses())) for layer in range(8)] == [1, 1, 1, 0, 1, 1, 1, 0]


def test_contract():
    assert NoPEHybrid.per_layer and NoPEHybrid(4, site(0)).uses() == {"rotate"}
    with pytest.raises(ValueError, match="`every` must be at least 2, but is 1"):
        NoPEHybrid(4, site(0), every=1)
    with pytest.raises(ValueError, match="but is added to the embeddings"):
        NoPEHybrid(4, site(0), Sinusoidal(8))
    with pytest.raises(RecipeError, match="but is added to the embeddings"):
        spec = {"name": "nope_hybrid", "encoding": "learned"}
        create_registry().build("position", spec, d_model=8, head_dim=4, num_heads=2, max_length=9, site=site(0))
