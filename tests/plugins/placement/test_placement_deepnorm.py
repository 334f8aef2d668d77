"""DeepNorm's two constants, and what they are for: an update moves a deep model little."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite, Norm
from paddle_tfm_plugins.placement.deepnorm import DeepNorm

SCALED = (
    *("attention.value.weight", "attention.output.weight"),
    *("feed_forward.inner.weight", "feed_forward.output.weight"),
)


def make(stack, encoder_layers, decoder_layers, **options):
    sites = [LayerSite(stack, "self", 0, encoder_layers, decoder_layers)]
    return DeepNorm(sites=sites, norm=lambda site, width: Norm(), d_model=4, dropout=0.0, **options)


@pytest.mark.parametrize(
    ("stack", "encoder_layers", "decoder_layers", "alpha", "beta"),
    [
        ("encoder", 16, 1, 0.81 * 2, 0.87 / 2),
        ("encoder", 1, 2**16, 0.81 * 2, 0.87 / 2),
        ("decoder", 7, 27, 3.0, 324**-0.25),
        ("encoder", 8, 0, 2.0, 64**-0.25),
        ("decoder", 0, 8, 2.0, 64**-0.25),
    ],
)
def test_alpha_and_beta(stack, encoder_layers, decoder_layers, alpha, beta):
    placement = make(stack, encoder_layers, decoder_layers)
    assert (placement.alpha, placement.branch_gain) == (pytest.approx(alpha), pytest.approx(beta))
    free = make(stack, encoder_layers, decoder_layers, gain=False)
    assert (free.alpha, free.branch_gain) == (placement.alpha, 1.0)


def test_beta_scales_the_values_and_outputs_of_every_branch_and_nothing_else(make_model):
    """Initial values are functions of their paths, so that those of post-norm are the same without β."""
    post, deep = (dict(make_model(f"model.placement={name}").named_parameters()) for name in ("post", "deepnorm"))
    beta = {"encoder": 0.87 * 32 ** (-1 / 16), "decoder": 24**-0.25}  # 2 + 2 layers
    scaled = 0
    for path, parameter in post.items():
        inside = path.startswith(("encoder.layers", "decoder.layers")) and path.endswith(SCALED)
        factor = beta[path.split(".")[0]] if inside else 1.0
        np.testing.assert_allclose(deep[path].numpy(), factor * parameter.numpy(), rtol=1e-6, err_msg=path)
        scaled += inside
    assert scaled == 2 * 4 + 2 * 6


def moved(make_model, make_batch, name, layers):
    """How far one step of plain gradient descent moves the output, per unit of the step: a mean over seeds."""
    distances = []
    for seed in range(2):
        depth = [f"model.encoder_layers={layers}", f"model.decoder_layers={layers}"]
        model, batch = make_model(f"model.placement={name}", *depth, seed=seed), make_batch(seed=seed)
        before, _ = model(batch)
        model.loss(batch).backward()
        rate = 1e-5
        with paddle.no_grad():
            for path, parameter in model.named_parameters():
                if "layers." in path and parameter.grad is not None:
                    parameter.set_value(parameter - rate * parameter.grad)
            after, _ = model(batch)
        distances.append(float((after - before).norm()) / rate)
    return float(np.mean(distances))


def test_an_update_moves_a_deep_model_less_than_it_moves_a_shallow_one_of_post_norm(make_model, make_batch):
    """2203.00555, section 4: the expected update is bounded, whatever the depth, and grows with it in post-norm."""
    post, deep = ([moved(make_model, make_batch, name, layers) for layers in (2, 12)] for name in ("post", "deepnorm"))
    assert 2 * deep[1] < post[0]
    assert 2 * post[0] < post[1]
    assert deep[1] / deep[0] < post[1] / post[0]
