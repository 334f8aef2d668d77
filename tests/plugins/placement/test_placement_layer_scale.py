"""LayerScale: a small learned factor for each channel of each branch."""

import math

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite, Norm, PositionalEncoding, TokenInfo
from paddle_tfm_plugins.placement.layer_scale import LayerScale

SITES = [LayerSite("encoder", name, 0, 1, 1) for name in ("self", "feed_forward")]


class Same(Norm):
    def forward(self, x, valid=None, positions=None):
        return x


def make(cls=LayerScale, **options):
    return cls(sites=SITES, norm=lambda site, width: Same(), d_model=3, dropout=0.0, **options)


@pytest.mark.parametrize(("options", "initial"), [({}, 0.1), ({"initial": 1e-5}, 1e-5)])
def test_every_sublayer_has_a_scale_for_each_channel(options, initial):
    state = make(**options).state_dict()
    assert list(state) == ["scales.0", "scales.1"]
    for scale in state.values():
        np.testing.assert_allclose(scale.numpy(), np.full(3, initial), rtol=1e-6)
        assert scale.keep_initial


def test_a_model_with_small_scales_begins_close_to_its_embeddings(make_model, make_batch):
    batch, moved = make_batch(), []
    for initial in (1.0, 0.1, 1e-5):
        model = make_model(f"model.placement={{name: layer_scale, initial: {initial}}}")
        h, _ = model(batch)
        x, positions = model.decoder.enter(model.target_embedding(batch.target_in), paddle.arange(6).unsqueeze(0))
        end = TokenInfo(PositionalEncoding(), positions, batch.target_valid)
        moved.append(float((h - model.decoder.leave(x, end)).abs().max()))
    assert moved[0] > 1 > moved[1] > 1e-2 and moved[2] < 1e-4


@pytest.mark.parametrize("depth, initial", [(6, 0.1), (18, 0.1), (19, 1e-5), (24, 1e-5), (25, 1e-6), (36, 1e-6)])
def test_scales_start_by_the_depth_of_their_stack(depth, initial):
    """2103.17239, section 2: 0.1 until depth 18, 1e-5 for depth 24, 1e-6 for deeper networks."""
    givens = {"norm": lambda site, width: Norm(), "d_model": 3, "dropout": 0.0}
    for stack, layers in (("encoder", (depth, 100)), ("decoder", (100, depth))):
        placement = LayerScale(sites=[LayerSite(stack, "self", 0, *layers)], **givens)
        np.testing.assert_allclose(placement.scales[0].numpy(), np.full(3, initial), rtol=1e-6)


@pytest.mark.parametrize("initial", [0.0, -0.1, math.inf, math.nan])
def test_what_cannot_be_is_refused_by_a_sentence(initial):
    with pytest.raises(ValueError) as error:
        make(initial=initial)
    assert str(error.value) == f"`initial` must be in (0, inf), but is {initial}"
