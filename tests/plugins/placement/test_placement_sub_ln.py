"""Sub-LayerNorm and cross-attention, as in the authors' code."""

import math

import numpy as np
import pytest


@pytest.mark.parametrize("in_cross", [False, True])
def test_cross_attention_is_left_alone_as_in_the_authors_code(make_model, in_cross):
    """torchscale: `subln and self.self_attention` for the norm, `if "encoder_attn" in name: continue` for the scale."""
    model = make_model(f"model.placement={{name: sub_ln, in_cross: {str(in_cross).lower()}}}")
    plain = make_model("model.placement={name: sub_ln, gain: false}")
    gain = math.sqrt(math.log(6))
    for layer, other in zip(model.decoder.layers, plain.decoder.layers):
        assert layer.self_attention.inner_norm is not None and layer.feed_forward.inner_norm is not None
        assert (layer.cross_attention.inner_norm is not None) is in_cross
        for name, branch in layer.branches().items():
            expected = gain if in_cross or name != "cross" else 1.0
            both = branch.branch_weights(), other.branches()[name].branch_weights()
            assert len(both[0]) == 2  # value and output; both matrices of a feed-forward
            for ours, theirs in zip(*both):
                np.testing.assert_allclose(ours.numpy(), theirs.numpy() * expected, rtol=1e-6)


def test_an_attention_without_room_for_the_norm_may_stand_in_cross_attention(make_model):
    make_model("model.placement=sub_ln", "model.attention={self: multihead, cross: single_head}")
