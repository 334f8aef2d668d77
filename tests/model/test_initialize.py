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
