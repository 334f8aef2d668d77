"""Sub-LayerNorm and cross-attention, as in the authors' code."""

import math

import numpy as np


def test_cross_attention_is_left_alone_as_in_the_authors_code(make_model):
    """torchscale: `subln and self.self_attention` for the norm, `if "encoder_attn" in name: continue` for the scale."""
    model, plain = make_model("model.placement=sub_ln"), make_model("model.placement={name: sub_ln, gain: false}")
    gain = math.sqrt(math.log(6))
    for layer, other in zip(model.decoder.layers, plain.decoder.layers):
        assert layer.self_attention.inner_norm is not None and layer.feed_forward.inner_norm is not None
        assert layer.cross_attention.inner_norm is None
        for name, branch in layer.branches().items():
            expected = 1.0 if name == "cross" else gain
            ours, theirs = branch.branch_weights()[0].numpy(), other.branches()[name].branch_weights()[0].numpy()
            np.testing.assert_allclose(ours, theirs * expected, rtol=1e-6)


def test_an_attention_without_room_for_the_norm_may_stand_in_cross_attention(make_model):
    make_model("model.placement=sub_ln", "model.attention={self: multihead, cross: single_head}")
