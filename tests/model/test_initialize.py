"""What an initializer is told of a parameter's place, and that it suffices for variants that depend on depth."""

import numpy as np
import paddle
import pytest

from paddle_tfm.model.initialize import initialize
from paddle_tfm.protocols import Initializer, Tap

DEEP = ("model.encoder_layers=2", "model.decoder_layers=3")


class Recorded(Initializer):
    """Remembers what it is asked for; rates are halved in the decoder."""

    def __init__(self):
        self.sites = {}

    def draw_at(self, site, rng, shape, role):
        self.sites[site.path] = site, role
        return rng.normal(size=shape)

    def rate_factor(self, site, shape, role):
        return 0.5 if site.path.startswith("decoder.") else 1.0


def test_places_of_parameters(make_model):
    model, initializer = make_model(*DEEP), Recorded()
    initialize(model, initializer, seed=1)
    matrices = {path for path, parameter in model.named_parameters() if parameter.ndim >= 2}
    assert set(initializer.sites) == matrices
    for path, (site, role) in initializer.sites.items():
        assert (site.encoder_layers, site.decoder_layers) == (2, 3)
        assert site.branches == (2 * 2 if path.startswith("encoder.") else 3 * 3 if path.startswith("decoder.") else 0)
        assert (role == "embedding") == ("embedding" in path)
        assert site.factor == (4.0 if role == "embedding" else 1.0)  # sqrt(16)


def test_every_parameter_has_the_factor_of_its_rate(make_model):
    model = make_model(*DEEP)
    initialize(model, Recorded(), seed=1)
    for path, parameter in model.named_parameters():
        assert parameter.optimize_attr["learning_rate"] == (0.5 if path.startswith("decoder.") else 1.0)


class TFixup(Initializer):
    """T-Fixup (Huang et al. 2020, proceedings.mlr.press/v119/huang20f): Xavier's, times 0.67 N^(−1/4) in the encoder and
    (9 N)^(−1/4) in the decoder for the values, outputs and feed-forwards; tables N(0, 1/d) times (9 N)^(−1/4)."""

    SCALED = ("value.weight", "self_attention.output.weight", "cross_attention.output.weight", "inner.weight")

    def draw_at(self, site, rng, shape, role):
        if role == "embedding":
            return rng.normal(0, shape[-1] ** -0.5, shape) * (9 * site.decoder_layers) ** -0.25
        values = rng.uniform(-1, 1, shape) * (6 / (shape[-2] + shape[-1])) ** 0.5
        if not site.path.endswith((*self.SCALED, "feed_forward.output.weight")):
            return values
        decoder = site.path.startswith("decoder.")
        return values * ((9 * site.decoder_layers) ** -0.25 if decoder else 0.67 * site.encoder_layers**-0.25)


def test_t_fixup_can_be_written(make_model):
    model = make_model(*DEEP, "model.d_model=32", "model.d_ff=64")
    initialize(model, TFixup(), seed=1)
    values = {path: parameter.numpy() for path, parameter in model.named_parameters()}
    bound = (6 / 64) ** 0.5
    for path, factor in {
        "encoder.layers.1.self_attention.value.weight": 0.67 * 2**-0.25,
        "decoder.layers.2.cross_attention.output.weight": 27**-0.25,
        "decoder.layers.2.cross_attention.query.weight": 1.0,
    }.items():
        assert 0.9 < np.abs(values[path]).max() / (bound * factor) <= 1.0


def stream_growth(make_model, initializer, layers):
    """How much variance the branches of an encoder add to its stream at the start."""
    model = make_model(
        f"model.encoder_layers={layers}",
        "model.d_model=64",
        "model.d_ff=256",
        "model.num_heads=4",
        f"model.initializer={initializer}",
    )
    model.eval()
    tap = Tap(recording=True)
    tokens = paddle.to_tensor(np.random.default_rng(0).integers(4, 13, [4, 12]))
    with paddle.no_grad():
        model.encode(tokens, paddle.ones([4, 12], "bool"), tap=tap)
    return sum(float(value.var()) for path, value in tap.recorded if path.endswith(".branch"))


@pytest.mark.parametrize("std", [0.02, 0.1])
def test_with_gpt2_the_stream_does_not_grow_with_depth(make_model, std):
    """With one deviation four times as many branches add four times the variance; with 1/sqrt(N), as much."""
    normal, gpt2 = (
        [stream_growth(make_model, f"{{name: {name}, std: {std}}}", layers) for layers in (2, 8)]
        for name in ("normal", "gpt2")
    )
    assert normal[1] / normal[0] == pytest.approx(4.0, rel=0.3)
    assert gpt2[1] / gpt2[0] == pytest.approx(1.0, rel=0.3)
