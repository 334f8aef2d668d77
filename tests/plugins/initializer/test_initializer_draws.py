"""Initial values: their spread, their bounds, and that they follow from the generator alone."""

import numpy as np
import pytest
from scipy import stats

from paddle_tfm.protocols import ParameterSite
from paddle_tfm.randomness import generator
from paddle_tfm_plugins.initializer.gpt2 import GPT2
from paddle_tfm_plugins.initializer.mup import MuP
from paddle_tfm_plugins.initializer.normal import Normal
from paddle_tfm_plugins.initializer.small import Small
from paddle_tfm_plugins.initializer.uniform import Uniform
from paddle_tfm_plugins.initializer.xavier import Xavier

ALL = {
    "xavier": Xavier(),
    "normal": Normal(),
    "uniform": Uniform(),
    "small": Small(7),
    "gpt2": GPT2(),
    "mup": MuP(7),
}
SITE = ParameterSite("encoder.layers.0.self_attention.output.weight", 4, 2, 2)


def draw(initializer, shape, role="weight", key=0):
    return initializer.draw_at(SITE, generator(key, "test"), shape, role)


def follows(values, distribution):
    """Kolmogorov-Smirnov: a distribution off by a tenth in scale fails at these sizes."""
    return stats.kstest(values.ravel()[:20_000], distribution.cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("role", ["weight", "embedding"])
@pytest.mark.parametrize("shape", [[5, 7], (4, 5, 7)])
def test_kind_of_array(name, role, shape):
    values = draw(ALL[name], shape, role)
    assert isinstance(values, np.ndarray) and values.dtype == np.float32 and values.shape == tuple(shape)
    assert np.array_equal(values, draw(ALL[name], shape, role))
    assert not np.array_equal(values, draw(ALL[name], shape, role, key=1))


@pytest.mark.parametrize("shape", [[100, 300], [300, 100], [4, 100, 300]])
def test_xavier_weight(shape):
    values, bound = draw(Xavier(), shape), (6 / 400) ** 0.5
    assert follows(values, stats.uniform(-bound, 2 * bound))
    assert bound * 0.99 < np.abs(values).max() <= bound * (1 + 1e-6)


def test_xavier_embedding():
    assert follows(draw(Xavier(), [500, 64], "embedding"), stats.norm(0, 1 / 8))


@pytest.mark.parametrize("role", ["weight", "embedding"])
def test_normal(role):
    assert follows(draw(Normal(), [200, 100], role), stats.norm(0, 0.02))
    assert follows(draw(Normal(std=0.5), [200, 100], role), stats.norm(0, 0.5))


@pytest.mark.parametrize("role", ["weight", "embedding"])
def test_uniform(role):
    assert follows(draw(Uniform(), [200, 100], role), stats.uniform(-0.1, 0.2))
    assert follows(draw(Uniform(low=1.0, high=4.0), [200, 100], role), stats.uniform(1, 3))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: GPT2(std=-1.0), "`std` must be positive, but is -1.0"),
        (lambda: MuP(8, base_width=0), "`base_width` must be positive, but is 0"),
        (lambda: Normal(std=0.0), "`std` must be positive, but is 0.0"),
        (lambda: Uniform(low=0.1, high=0.1), "`low` must be below `high`, but 0.1 is not below 0.1"),
    ],
)
def test_bad_options(make, text):
    with pytest.raises(ValueError) as caught:
        make()
    assert str(caught.value) == text
