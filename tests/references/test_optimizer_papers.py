"""Every optimizer against its paper's algorithm over several steps, and every initializer against its distribution."""

import functools

import numpy as np
import paddle
import paper_equations as paper
import pytest

from paddle_tfm.protocols import ParameterSite

RATES = [0.01, 0.02, 0.03, 0.015, 0.01, 0.002, 0.02, 0.01]  # a schedule: the rate of a step is set before it
SHAPES = {  # by the names that the engine gives: `muon` tells the stacks' matrices by them
    "encoder.layers.0.self_attention.query.weight": (3, 4),
    "decoder.layers.1.feed_forward.output.weight": (5, 2),
    "encoder.layers.0.feed_forward.experts": (2, 3, 2),
    "decoder.layers.0.self_attention.gate.weight": (4, 1),
    "head.output.weight": (4, 3),
    "decoder.layers.0.placement.norms.0.weight": (4,),
}


def adam(path, theta, gradients, rates, beta1=0.9, beta2=0.98, epsilon=1e-9):
    """The constants are those of 1706.03762, section 5.3."""
    return paper.adamw(theta, gradients, rates, beta1, beta2, epsilon, 0.0)


def adamw(path, theta, gradients, rates, beta1=0.9, beta2=0.98, epsilon=1e-9, weight_decay=0.01):
    """The paper decays every parameter; ours spares those of one dimension."""
    return paper.adamw(theta, gradients, rates, beta1, beta2, epsilon, weight_decay if theta.ndim > 1 else 0.0)


def adafactor(path, theta, gradients, rates, decay=0.8, clip=1.0, relative=False, epsilon1=1e-30, epsilon2=1e-3):
    """1804.04235, algorithm 4 for matrices and 5 for vectors, β̂_2t = 1 − t^−0.8 (section 7.2), RMS of section 6;
    without `relative` α_t is the rate, with it ρ_t is (section 8). Three dimensions: each matrix factored, clipped
    together."""

    def rms(x):
        return np.sqrt((x**2).mean())

    r, c, v, out = 0.0, 0.0, 0.0, []
    for t, (g, rho) in enumerate(zip(gradients, rates), start=1):
        alpha = max(epsilon2, rms(theta)) * rho if relative else rho
        beta = 1 - t**-decay
        if theta.ndim < 2:
            v = beta * v + (1 - beta) * (g**2 + epsilon1)
        else:
            n, m = theta.shape[-2:]
            r = beta * r + (1 - beta) * (g**2 + epsilon1) @ np.ones((m, 1))
            c = beta * c + (1 - beta) * np.ones((1, n)) @ (g**2 + epsilon1)
            v = r @ c / (np.ones((1, n)) @ r)
        u = g / np.sqrt(v)
        theta = theta - alpha * u / max(1, rms(u) / clip)
        out.append(theta)
    return out


def lion(path, theta, gradients, rates, beta1=0.9, beta2=0.99, weight_decay=0.0):
    """2302.06675, algorithm 2; the decay spares parameters of one dimension."""
    decay = weight_decay if theta.ndim > 1 else 0.0
    m, out = np.zeros_like(theta), []
    for g, eta in zip(gradients, rates):
        c = beta1 * m + (1 - beta1) * g
        theta = theta - eta * (np.sign(c) + decay * theta)
        m = beta2 * m + (1 - beta2) * g
        out.append(theta)
    return out


def radam(path, theta, gradients, rates, beta1=0.9, beta2=0.98, epsilon=1e-9):
    """1908.03265, algorithm 2, with ε beside the root as in Adam."""
    infinite, m, v, out = 2 / (1 - beta2) - 1, np.zeros_like(theta), np.zeros_like(theta), []
    for t, (g, alpha) in enumerate(zip(gradients, rates), start=1):
        v, m = beta2 * v + (1 - beta2) * g**2, beta1 * m + (1 - beta1) * g
        unbiased = m / (1 - beta1**t)
        rho = infinite - 2 * t * beta2**t / (1 - beta2**t)
        if rho > 4:
            adaptive = 1 / (np.sqrt(v / (1 - beta2**t)) + epsilon)
            r = np.sqrt((rho - 4) * (rho - 2) * infinite / ((infinite - 4) * (infinite - 2) * rho))
            theta = theta - alpha * r * unbiased * adaptive
        else:
            theta = theta - alpha * unbiased
        out.append(theta)
    return out


def newton_schulz(g, steps):
    """Jordan 2024 (kellerjordan.github.io/posts/muon), on singular values: each goes through φ(x) = a x + b x³ + c
    x⁵."""
    a, b, c = 3.4445, -4.7750, 2.0315
    u, s, vt = np.linalg.svd(g, full_matrices=False)
    s = s / (np.sqrt((s**2).sum()) + 1e-7)
    for _ in range(steps):
        s = a * s + b * s**3 + c * s**5
    return u @ np.diag(s) @ vt


def muon(
    path,
    theta,
    gradients,
    rates,
    momentum=0.95,
    nesterov=True,
    iterations=5,
    beta1=0.9,
    beta2=0.98,
    epsilon=1e-9,
    weight_decay=0.01,
):
    """2502.16982, section 2.2 (the update 0.2 · O_t · sqrt(max(A, B)) + λ W), for the stacks' matrices; AdamW
    elsewhere."""
    if ".layers." not in path or theta.ndim != 2 or 1 in theta.shape:
        return adamw(path, theta, gradients, rates, beta1, beta2, epsilon, weight_decay)
    m, out = np.zeros_like(theta), []
    for g, eta in zip(gradients, rates):
        m = momentum * m + g
        o = newton_schulz(momentum * m + g if nesterov else m, iterations)
        theta = theta - eta * (0.2 * o * np.sqrt(max(theta.shape)) + weight_decay * theta)
        out.append(theta)
    return out


def normuon(path, theta, gradients, rates, neuron_beta=0.95, **options):
    """2510.05491, algorithm 1, for the stacks' matrices [in, out]: a neuron is a column. The momentum
    is a sum, of which orthogonalization sees no difference to the paper's mean. `muon` elsewhere."""
    if ".layers." not in path or theta.ndim != 2 or 1 in theta.shape:
        return muon(path, theta, gradients, rates, **options)
    momentum, decay = options.get("momentum", 0.95), options.get("weight_decay", 0.01)
    m, v, out = np.zeros_like(theta), np.zeros(theta.shape[1]), []
    for g, eta in zip(gradients, rates):
        m = momentum * m + g
        ahead = momentum * m + g if options.get("nesterov", True) else m
        o = newton_schulz(ahead, options.get("iterations", 5))
        v = neuron_beta * v + (1 - neuron_beta) * (o**2).mean(0)
        o = o / (np.sqrt(v) + 1e-10)
        theta = theta - eta * decay * theta - 0.2 * eta * np.sqrt(theta.size) / np.linalg.norm(o) * o
        out.append(theta)
    return out


def cautious_adamw(path, theta, gradients, rates, beta1=0.9, beta2=0.98, epsilon=1e-9, weight_decay=0.01):
    """2510.12402, algorithm 1: x ← x − η (u + λ 1[u ⊙ x ≥ 0] ⊙ x), u Adam's; the decay spares one dimension."""
    decay = weight_decay if theta.ndim > 1 else 0.0
    m, v, out = 0.0, 0.0, []
    for t, (g, eta) in enumerate(zip(gradients, rates), start=1):
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g**2
        u = m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + epsilon)
        theta = theta - eta * (u + decay * np.where(u * theta >= 0, theta, 0.0))
        out.append(theta)
    return out


def sgd(path, theta, gradients, rates, momentum=0.9, nesterov=False, weight_decay=0.0):
    """Sutskever 2013, equations 1 and 2, with the rate outside of v, so that it may change; `nesterov` as in 1212.0901,
    equation 7, in the variables that are ahead: the update is g + μ v."""
    decay = weight_decay if theta.ndim > 1 else 0.0
    v, out = np.zeros_like(theta), []
    for g, eta in zip(gradients, rates):
        v = momentum * v + g
        theta = (1 - eta * decay) * theta - eta * (g + momentum * v if nesterov else v)
        out.append(theta)
    return out


def soap(
    path,
    theta,
    gradients,
    rates,
    beta1=0.95,
    beta2=0.95,
    preconditioner_beta=0.95,
    epsilon=1e-8,
    weight_decay=0.01,
    frequency=10,
    max_dim=10_000,
):
    """2409.11321, algorithms 3 and 4, with what nikhilvyas/SOAP adds: the first gradient makes the bases and no step,
    Adam's corrections count from the second, columns are put in order, and V with them. A basis acts on its dimension
    as an unfolded matrix (tensors of more dimensions: a basis for each)."""

    def unfold(x, axis):
        return np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)

    def times(x, matrix, axis):
        rest = np.moveaxis(x, axis, 0).shape[1:]
        return np.moveaxis((matrix @ unfold(x, axis)).reshape(-1, *rest), 0, axis)

    axes = [a for a, size in enumerate(theta.shape) if theta.ndim > 1 and size <= max_dim]
    decay = weight_decay if theta.ndim > 1 else 0.0
    first = gradients[0]
    covariance = {a: (1 - preconditioner_beta) * unfold(first, a) @ unfold(first, a).T for a in axes}
    basis = {a: np.linalg.eigh(covariance[a])[1][:, ::-1] for a in axes}
    m, v, out = np.zeros_like(theta), np.zeros_like(theta), [theta]
    for t, (g, eta) in enumerate(zip(gradients[1:], rates[1:]), start=1):
        m = beta1 * m + (1 - beta1) * g
        rotated_g, rotated_m = g, m
        for a in axes:
            rotated_g, rotated_m = times(rotated_g, basis[a].T, a), times(rotated_m, basis[a].T, a)
        v = beta2 * v + (1 - beta2) * rotated_g**2
        n = rotated_m / (np.sqrt(v) + epsilon)
        for a in axes:
            n = times(n, basis[a], a)
        theta = (1 - eta * decay) * theta - eta * np.sqrt(1 - beta2**t) / (1 - beta1**t) * n
        out.append(theta)
        for a in axes:
            outer = unfold(g, a) @ unfold(g, a).T
            covariance[a] = preconditioner_beta * covariance[a] + (1 - preconditioner_beta) * outer
            if t % frequency == 0:
                order = np.argsort(-np.diag(basis[a].T @ covariance[a] @ basis[a]))
                basis[a] = np.linalg.qr(covariance[a] @ basis[a][:, order])[0]
                v = np.take(v, order, a)
    return out


def schedule_free_points(theta, gradients, rates, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.0):
    """2405.15682, algorithm 1: (y, x) after each step. c weighs by γ², of the largest rate so far as in
    facebookresearch/schedule_free; gradients are those at y; the decay, at y too, spares one dimension."""
    decay = weight_decay if theta.ndim > 1 else 0.0
    x = z = y = theta
    v, total, out = np.zeros_like(theta), 0.0, []
    for t, g in enumerate(gradients, start=1):
        v = beta2 * v + (1 - beta2) * g**2
        z = z - rates[t - 1] * (g / (np.sqrt(v / (1 - beta2**t)) + epsilon) + decay * y)
        weight = max(rates[:t]) ** 2
        total += weight
        x = (1 - weight / total) * x + weight / total * z
        y = (1 - beta1) * z + beta1 * x
        out.append((y, x))
    return out


def schedule_free(path, theta, gradients, rates, **options):
    return [y for y, _ in schedule_free_points(theta, gradients, rates, **options)]


OPTIMIZERS = {"adam": adam, "adamw": adamw, "adafactor": adafactor, "lion": lion, "radam": radam, "muon": muon}
OPTIMIZERS |= {
    "normuon": normuon,
    "cautious_adamw": cautious_adamw,
    "sgd": sgd,
    "soap": soap,
    "schedule_free": schedule_free,
}
BETAS = {"beta1": 0.8, "beta2": 0.95}
SETTINGS = {
    "adam": [{}, {**BETAS, "epsilon": 1e-2}],
    "adamw": [{}, {**BETAS, "epsilon": 1e-2, "weight_decay": 0.3}, {"weight_decay": 0.0}],
    "adafactor": [
        {},
        {"relative": True},
        {"decay": 0.5, "clip": 0.3},
        {"relative": True, "epsilon1": 1e-2, "epsilon2": 2.0},
    ],
    "lion": [{}, {**BETAS, "weight_decay": 0.3}],
    "radam": [{}, {**BETAS, "epsilon": 1e-2}, {"beta2": 0.5}],
    "sgd": [{}, {"momentum": 0.0}, {"momentum": 0.8, "nesterov": True, "weight_decay": 0.3}],
    "soap": [
        {},
        {**BETAS, "epsilon": 1e-2, "weight_decay": 0.3, "frequency": 2, "preconditioner_beta": 0.7},
        {"frequency": 1, "max_dim": 3},
    ],
    "schedule_free": [{}, {**BETAS, "epsilon": 1e-2, "weight_decay": 0.3}],
    "cautious_adamw": [{}, {**BETAS, "epsilon": 1e-2, "weight_decay": 5.0}, {"weight_decay": 0.0}],
    "normuon": [{}, {**BETAS, "neuron_beta": 0.6, "momentum": 0.8, "nesterov": False, "weight_decay": 0.3}],
    "muon": [
        {},
        {**BETAS, "momentum": 0.8, "nesterov": False, "weight_decay": 0.3},
        {"iterations": 2, "epsilon": 1e-2},
    ],
}


OPEN = {  # of these the first gradient has several eigenvectors of the eigenvalue 0, and the paper says not which
    "soap": {"decoder.layers.1.feed_forward.output.weight", "decoder.layers.0.self_attention.gate.weight"}
}


@pytest.mark.parametrize("name, settings", [(name, s) for name in SETTINGS for s in SETTINGS[name]], ids=str)
def test_optimizer_is_the_papers(registry, precision, rng, name, settings):
    open_to = set() if "max_dim" in settings else OPEN.get(name, set())
    starts = {path: rng.normal(size=shape) for path, shape in SHAPES.items() if path not in open_to}
    parameters = {}
    for path, start in starts.items():
        parameters[path] = paddle.create_parameter(list(start.shape), precision.dtype)
        parameters[path].set_value(precision.tensor(start))
        parameters[path].name = path
    optimizer = registry.build("optimizer", {"name": name, **settings}).create(list(parameters.values()))
    scale = {path: 1.0 if start.ndim > 1 else 1e-4 for path, start in starts.items()}  # small ones tell where ε stands
    gradients = {path: [scale[path] * rng.normal(size=start.shape) for _ in RATES] for path, start in starts.items()}
    expected = {path: OPTIMIZERS[name](path, starts[path], gradients[path], RATES, **settings) for path in starts}
    for t, rate in enumerate(RATES):
        optimizer.set_lr(rate)
        loss = sum((parameters[path] * precision.tensor(gradients[path][t])).sum() for path in starts)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        for path, parameter in parameters.items():
            close(precision, parameter, expected[path][t], f"{path}, step {t + 1}", by_paddle=name in ("adam", "adamw"))


def close(precision, ours, expected, what, by_paddle):
    """Of float64 too Paddle's own steps are good to some 1e-8 only."""
    assert str(ours.numpy().dtype) == precision.dtype
    tolerance = {"float64": (1e-7, 1e-10) if by_paddle else (1e-10, 1e-12), "float32": (1e-5, 1e-6)}[precision.dtype]
    np.testing.assert_allclose(ours.numpy(), expected, *tolerance, err_msg=what)


@pytest.mark.parametrize("options", [{}, {**BETAS, "weight_decay": 0.3}], ids=str)
def test_schedule_free_is_evaluated_at_x(registry, precision, rng, options):
    """Within `evaluated` the parameter is the average x of 2405.15682, algorithm 1; after it, y to the bit."""
    start = rng.normal(size=(3, 4))
    gradients = [rng.normal(size=start.shape) for _ in RATES]
    parameter = paddle.create_parameter([3, 4], precision.dtype)
    parameter.set_value(precision.tensor(start))
    ours = registry.build("optimizer", {"name": "schedule_free", **options})
    optimizer = ours.create([parameter])
    for (_, x), slope, rate in zip(schedule_free_points(start, gradients, RATES, **options), gradients, RATES):
        optimizer.set_lr(rate)
        (parameter * precision.tensor(slope)).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
        y = parameter.numpy().copy()
        with ours.evaluated(optimizer):
            close(precision, parameter, x, "x", by_paddle=False)
        np.testing.assert_array_equal(parameter.numpy(), y)


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


def small(shape, role):
    """1910.05895, section 2.2: N(0, 2 / (5 d)), d = 48 here, whatever the shape."""
    return lambda x: paper.normal_cdf(x / np.sqrt(2 / (5 * 48))), np.inf


def gpt2(shape, role):
    """Radford 2019, section 2.3: the weights of N residual layers times 1/sqrt(N); others N(0, 0.02²), openai/gpt-2."""
    return lambda x: paper.normal_cdf(x / (0.02 / np.sqrt(6) if role == "weight" else 0.02)), np.inf


def mup(shape, role):
    """2203.03466, table 3: variance 1/fan_in of hidden weights; of input weights one that no width changes (a one-hot
    vector has one entry that is not zero), here 1 after the factor of the embedding."""
    return lambda x: paper.normal_cdf(x * np.sqrt(shape[0]) if role == "weight" else x * 3.0), np.inf


INITIALIZERS = {"xavier": xavier, "normal": normal, "uniform": uniform, "small": small, "gpt2": gpt2, "mup": mup}
SITES = {
    "weight": ParameterSite("decoder.layers.1.feed_forward.output.weight", 6, 2, 2),
    "embedding": ParameterSite("target_embedding.weight", 0, 2, 2, factor=3.0, maps=None),
}


@pytest.mark.parametrize(
    "role, shape", [("weight", (64, 200)), ("weight", (300, 16)), ("embedding", (250, 48))], ids=str
)
@pytest.mark.parametrize("name", INITIALIZERS)
def test_initial_values_have_the_papers_distribution(registry, rng, name, role, shape):
    drawn = registry.build("initializer", name, d_model=48).draw_at(SITES[role], rng, list(shape), role)
    cdf, bound = INITIALIZERS[name](shape, role)
    assert drawn.shape == shape and np.abs(drawn).max() <= bound
    distance, critical = paper.kolmogorov_distance(drawn, cdf)
    assert distance < critical


@pytest.mark.parametrize(
    "maps, shape, role, factor, expected",
    [
        ("hidden", (48, 48), "weight", 1.0, 12 / 48),
        ("output", (48, 500), "weight", 1.0, 12 / 48),
        ("input", (8, 48), "weight", 1.0, 1.0),
        (None, (500,), "weight", 1.0, 1.0),
        (None, (500, 48), "embedding", 4.0, 1 / 4),
    ],
)
def test_rates_of_mup(registry, maps, shape, role, factor, expected):
    """2203.03466, table 3: Adam's rate is divided by the fan_in of hidden and output weights, which grows from 12 to 48
    here. A table that is multiplied by a factor moves by the rate after it."""
    initializer = registry.build("initializer", {"name": "mup", "base_width": 12}, d_model=48)
    site = ParameterSite("a.parameter", factor=factor, maps=maps)
    assert initializer.rate_factor(site, shape, role) == pytest.approx(expected)
