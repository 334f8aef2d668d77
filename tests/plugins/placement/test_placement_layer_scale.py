"""LayerScale: a small learned factor for each channel of each branch."""

import math

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite, Norm, PositionalEncoding, TokenInfo
from paddle_tfm_plugins.placement.layer_scale import LayerScale
from paddle_tfm_plugins.placement.pre import Pre

SITES = [LayerSite("encoder", name, 0, 1, 1) for name in ("self", "feed_forward")]
HERE = TokenInfo(PositionalEncoding(), paddle.arange(2).unsqueeze(0), paddle.ones([1, 2], "bool"))


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


def test_channels_are_scaled_one_by_one():
    placement = make()
    placement.scales[0].set_value(paddle.to_tensor([1.0, 10.0, 100.0]))
    placement.scales[1].set_value(paddle.to_tensor([0.0, -1.0, 2.0]))
    x = paddle.to_tensor([[[1.0, 1.0, 1.0], [2.0, 0.0, 1.0]]])
    out = placement(x, [lambda y: y * 3.0, lambda y: paddle.ones_like(y)], HERE)
    np.testing.assert_allclose(out.numpy(), [[[4.0, 30.0, 303.0], [8.0, -1.0, 303.0]]], rtol=1e-6)


def test_scales_of_one_are_pre_norm():
    x = paddle.randn([1, 2, 3])
    parts = [paddle.tanh, paddle.sin]
    np.testing.assert_array_equal(make(initial=1.0)(x, parts, HERE).numpy(), make(Pre)(x, parts, HERE).numpy())


def test_gradients_by_finite_differences(float64, assert_gradients):
    placement, rng = make(initial=0.7), np.random.default_rng(1)
    matrices = [paddle.to_tensor(rng.normal(size=(3, 3))) for _ in SITES]
    x = paddle.to_tensor(rng.normal(size=(1, 2, 3)))
    parts = [lambda y, matrix=matrix: paddle.tanh(paddle.matmul(y, matrix)) for matrix in matrices]
    assert_gradients(lambda: placement(x, parts, HERE), x, *placement.parameters(), *matrices)


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
