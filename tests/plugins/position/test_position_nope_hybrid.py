import numpy as np
import paddle
import pytest

from paddle_tfm import RecipeError, create_registry
from paddle_tfm.protocols import LayerSite
from paddle_tfm_plugins.position.nope_hybrid import NoPEHybrid
from paddle_tfm_plugins.position.rotary import Rotary
from paddle_tfm_plugins.position.shaw import Shaw
from paddle_tfm_plugins.position.sinusoidal import Sinusoidal


def site(layer):
    return LayerSite("decoder", "self", layer, 8, 8)


def test_llama_4s_layers():
    """`no_rope_layers` of its configuration, interval 4: 1, 1, 1, 0, 1, 1, 1, 0."""
    assert [int(bool(NoPEHybrid(4, site(layer)).uses())) for layer in range(8)] == [1, 1, 1, 0, 1, 1, 1, 0]


@pytest.mark.parametrize("inside", [lambda: Rotary(4), lambda: Shaw(4, 3)])
def test_a_layer_has_all_of_the_other_encoding_or_nothing(inside):
    other = inside()
    with_positions, without = (NoPEHybrid(4, site(layer), other, every=2) for layer in (0, 1))
    assert with_positions.uses() == other.uses() and not without.uses()
    assert len(with_positions.parameters()) == len(other.parameters()) and not without.parameters()
    q, at = paddle.randn([1, 2, 3, 4]), paddle.arange(3).unsqueeze(0)
    for hook, arguments in (
        ("query", (q, at)), ("key", (q, at)), ("bias", (at, at)), ("scores", (q, q, at, at)),
        ("values", (paddle.ones([1, 2, 3, 3]), at, at)), ("remap", (at, None)),
    ):  # fmt: skip
        ours, theirs = getattr(with_positions, hook)(*arguments), getattr(other, hook)(*arguments)
        nothing = getattr(without, hook)(*arguments)
        assert (ours is None) is (theirs is None)
        if ours is not None:
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
        assert nothing is None or nothing is arguments[0]


def test_contract():
    assert NoPEHybrid.per_layer and NoPEHybrid(4, site(0)).uses() == {"rotate"}
    with pytest.raises(ValueError, match="`every` must be at least 2, but is 1"):
        NoPEHybrid(4, site(0), every=1)
    with pytest.raises(ValueError, match="but is added to the embeddings"):
        NoPEHybrid(4, site(0), Sinusoidal(8))
    with pytest.raises(RecipeError, match="but is added to the embeddings"):
        spec = {"name": "nope_hybrid", "encoding": "learned"}
        create_registry().build("position", spec, d_model=8, head_dim=4, num_heads=2, max_length=9, site=site(0))
