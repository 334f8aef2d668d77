"""Gradients at initialization against depth, which is what most placements were made for. Of small random models: not the
numbers but their order is what is claimed."""

import numpy as np
import pytest


def norms(make_model, make_batch, placement, layers, seeds=1):
    """Of the gradient of each decoder layer's last feed-forward matrix: [layers], a mean over seeds."""
    of_seeds = []
    for seed in range(seeds):
        depth = [f"model.encoder_layers={layers}", f"model.decoder_layers={layers}"]
        model, batch = make_model(f"model.placement={placement}", *depth, seed=seed), make_batch(seed=seed)
        (model.loss(batch) / batch.tokens).backward()
        gradients = [layer.feed_forward.output.weight.grad.numpy() for layer in model.decoder.layers]
        of_seeds.append([np.linalg.norm(gradient) for gradient in gradients])
    return np.mean(of_seeds, 0)


@pytest.mark.parametrize("placement", ["post", "pre", "sandwich", "peri", "sub_ln", "deepnorm", "layer_scale"])
def test_gradients_grow_towards_the_last_layer_in_post_norm_alone(make_model, make_batch, placement):
    gradient_norms = norms(make_model, make_batch, placement, 12)
    growth = gradient_norms[-1] / gradient_norms[0]
    assert growth > 20 if placement == "post" else 0.1 < growth < 1.5


def test_the_last_gradient_is_flat_in_post_norm_and_falls_with_depth_in_pre_norm(make_model, make_batch):
    """2002.04745, theorem 1: at most of order d sqrt(ln d) whatever the depth L, against d sqrt(ln d / L)."""
    fall = {}
    for placement in ("post", "pre"):
        shallow, deep = (norms(make_model, make_batch, placement, layers, 2)[-1] for layers in (2, 12))
        fall[placement] = shallow / deep
    assert fall["post"] < 1.1
    assert 1.3 < fall["pre"] < 4
