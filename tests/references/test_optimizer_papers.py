"""Every optimizer against its paper's algorithm over several steps, and every initializer against its distribution."""

import functools

import numpy as np
import paddle
import paper_equations as paper
import pytest
from paddle import nn

OPTIMIZERS = {"adam": paper.adam, "adamw": paper.adamw}
SETTINGS = {
    "adam": [{}, {"beta1": 0.8, "beta2": 0.95, "epsilon": 1e-2}],
    "adamw": [
        {},
        {"beta1": 0.8, "beta2": 0.95, "epsilon": 1e-2, "weight_decay": 0.3},
        {"weight_decay": 0.0},
    ],
}
DEFAULTS = {"beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9}  # 1706.03762, section 5.3
RATES = [0.01, 0.02, 0.03, 0.015, 0.01, 0.002]  # a schedule: the rate of a step is set before it


class Weights(nn.Layer):
    def __init__(self):
        super().__init__()
        self.matrix = self.create_parameter([3, 4])
        self.vector = self.create_parameter([4])


@pytest.mark.parametrize("name, settings", [(name, s) for name in SETTINGS for s in SETTINGS[name]], ids=str)
def test_optimizer_is_the_papers(registry, precision, rng, name, settings):
    """`adamw` decays the matrix only: the paper decays every parameter, ours spares those of one dimension."""
    weights = Weights()
    starts = {}
    for path, parameter in weights.named_parameters():
        starts[path] = rng.normal(size=parameter.shape)
        parameter.set_value(precision.tensor(starts[path]))
    optimizer = registry.build("optimizer", {"name": name, **settings}).create(list(weights.parameters()))
    scale = {"matrix": 1.0, "vector": 1e-4}  # small gradients tell where ε stands
    gradients = {p: [scale[p] * rng.normal(size=start.shape) for _ in RATES] for p, start in starts.items()}
    options = {**DEFAULTS, **({"weight_decay": 0.01} if name == "adamw" else {}), **settings}
    options["eps"] = options.pop("epsilon")
    expected = {p: OPTIMIZERS[name](starts[p], gradients[p], RATES, **options) for p in starts if p == "matrix"}
    spared = {key: value for key, value in options.items() if key != "weight_decay"}
    expected["vector"] = paper.adam(starts["vector"], gradients["vector"], RATES, **spared)
    for t, rate in enumerate(RATES):
        optimizer.set_lr(rate)
        loss = sum(
            (parameter * precision.tensor(gradients[path][t])).sum() for path, parameter in weights.named_parameters()
        )
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        for path, parameter in weights.named_parameters():
            close(precision, parameter, expected[path][t])


def close(precision, ours, expected):
    """Of float64 too Paddle's steps are good to some 1e-8 only."""
    assert str(ours.numpy().dtype) == precision.dtype
    tolerance = {"float64": (1e-7, 1e-10), "float32": (1e-5, 1e-6)}[precision.dtype]
    np.testing.assert_allclose(ours.numpy(), expected, *tolerance)


def test_adam_first_step_is_the_sign_of_the_gradient(registry):
    """1412.6980, section 2.1: with m̂ / sqrt(v̂) = ±1 after one gradient, the first step is the rate, whatever the scale."""
    weights = Weights()
    weights.matrix.set_value(paddle.zeros([3, 4]))
    optimizer = registry.build("optimizer", "adam").create([weights.matrix])
    optimizer.set_lr(0.125)
    slope = np.linspace(-3e-3, 5e2, 12, dtype=np.float32).reshape(3, 4)
    (weights.matrix * paddle.to_tensor(slope)).sum().backward()
    optimizer.step()
    np.testing.assert_allclose(weights.matrix.numpy(), -0.125 * np.sign(slope), rtol=1e-4)


# ----------------------------------------------------------------------------------------------------- initializers


def xavier(shape, role):
    if role == "weight":
        bound = paper.glorot_bound(*shape)
        return functools.partial(paper.uniform_cdf, low=-bound, high=bound), bound
    return lambda x: paper.normal_cdf(
        x * np.sqrt(shape[1])
    ), np.inf  # tables: deviation 1 / sqrt(width), not in the paper


def normal(shape, role):
    return lambda x: paper.normal_cdf(x / 0.02), np.inf


def uniform(shape, role):
    return functools.partial(paper.uniform_cdf, low=-0.1, high=0.1), 0.1


INITIALIZERS = {"xavier": xavier, "normal": normal, "uniform": uniform}


@pytest.mark.parametrize(
    "role, shape", [("weight", (64, 200)), ("weight", (300, 16)), ("embedding", (250, 48))], ids=str
)
@pytest.mark.parametrize("name", INITIALIZERS)
def test_initial_values_have_the_papers_distribution(registry, rng, name, role, shape):
    drawn = registry.build("initializer", name, d_model=48).draw(rng, list(shape), role)
    cdf, bound = INITIALIZERS[name](shape, role)
    assert drawn.shape == shape and np.abs(drawn).max() <= bound
    distance, critical = paper.kolmogorov_distance(drawn, cdf)
    assert distance < critical


@pytest.mark.parametrize(
    "spec, cdf",
    [
        ({"name": "normal", "std": 0.5}, lambda x: paper.normal_cdf(x / 0.5)),
        ({"name": "uniform", "low": -1.0, "high": 3.0}, functools.partial(paper.uniform_cdf, low=-1.0, high=3.0)),
    ],
    ids=["normal", "uniform"],
)
def test_options_of_initial_values(registry, rng, spec, cdf):
    drawn = registry.build("initializer", spec, d_model=48).draw(rng, [100, 100], "weight")
    distance, critical = paper.kolmogorov_distance(drawn, cdf)
    assert distance < critical


def test_the_distance_tells_distributions_apart(rng):
    """What the two tests above rest on: a spread wrong by a twentieth is found."""
    drawn = rng.uniform(-1, 1, size=12_800)
    distance, critical = paper.kolmogorov_distance(drawn, functools.partial(paper.uniform_cdf, low=-1.05, high=1.05))
    assert distance > critical
