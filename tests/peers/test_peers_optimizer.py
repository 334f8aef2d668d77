"""Optimizers beside PyTorch's, Transformers' and lion-pytorch's own: the same gradients over several steps."""

import numpy as np
import paddle
import pytest

pytestmark = pytest.mark.peers
torch = pytest.importorskip("torch")
RATES = [0.01, 0.02, 0.03, 0.015, 0.01, 0.002, 0.02, 0.01]
SHAPES = {  # by the names that the engine gives: `muon` tells the stacks' matrices by them
    "encoder.layers.0.self_attention.query.weight": (6, 4),
    "decoder.layers.1.feed_forward.output.weight": (5, 7),
    "decoder.layers.0.placement.norms.0.weight": (4,),
}
MATRICES = [path for path, shape in SHAPES.items() if len(shape) == 2]
BETAS = {"beta1": 0.8, "beta2": 0.95}


@pytest.fixture
def walk(registry, precision, rng):
    """walk(spec, make, paths): parameters after each step, [steps, all elements], ours and theirs. `make(matrices,
    others)` gives the optimizer over parameters of two dimensions and over the others; rates are set before each
    step."""

    def run(spec, make, paths=tuple(SHAPES)):
        starts = {path: rng.normal(size=SHAPES[path]) for path in paths}
        gradients = [{path: rng.normal(size=SHAPES[path]) for path in paths} for _ in RATES]
        ours, theirs = {}, {}
        for path, start in starts.items():
            ours[path] = paddle.create_parameter(list(start.shape), precision.dtype)
            ours[path].set_value(precision.ours(start))
            ours[path].name = path
            theirs[path] = torch.nn.Parameter(precision.theirs(start))
        mine = registry.build("optimizer", spec).create(list(ours.values()))
        others = make([p for p in theirs.values() if p.ndim > 1], [p for p in theirs.values() if p.ndim < 2])
        values, expected = [], []
        for rate, slopes in zip(RATES, gradients):
            mine.set_lr(rate)
            sum((ours[path] * precision.ours(slopes[path])).sum() for path in paths).backward()
            mine.step()
            mine.clear_grad()
            for group in others.param_groups:
                group["lr"] = rate
            for path in paths:
                theirs[path].grad = precision.theirs(slopes[path])
            others.step()
            values.append(np.concatenate([ours[path].numpy().reshape(-1) for path in paths]))
            expected.append(np.concatenate([theirs[path].detach().numpy().reshape(-1).copy() for path in paths]))
        assert np.abs(np.diff(expected, axis=0)).max() > 1e-3
        return np.stack(values), np.stack(expected)

    return run


def betas(options):
    return options.get("beta1", 0.9), options.get("beta2", 0.98)


BY_PADDLE = 1e-7  # of parameters in float64 too Paddle's own steps are good to some 1e-9 only


@pytest.mark.parametrize("options", [{}, {**BETAS, "epsilon": 1e-2}], ids=str)
def test_adam_is_pytorchs(walk, precision, agree, options):
    def make(matrices, others):
        return torch.optim.Adam([*matrices, *others], 1.0, betas(options), eps=options.get("epsilon", 1e-9))

    agree(*walk({"name": "adam", **options}, make), max(BY_PADDLE, precision.tolerance))


@pytest.mark.parametrize("options", [{}, {**BETAS, "epsilon": 1e-2, "weight_decay": 0.3}], ids=str)
def test_adamw_is_pytorchs(walk, precision, agree, options):
    """Ours decays parameters of two dimensions alone."""

    def make(matrices, others):
        decay = options.get("weight_decay", 0.01)
        groups = [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, 1.0, betas(options), eps=options.get("epsilon", 1e-9))

    agree(*walk({"name": "adamw", **options}, make), max(BY_PADDLE, precision.tolerance))


@pytest.mark.parametrize("options", [{}, BETAS, {"beta2": 0.5}], ids=str)
def test_radam_is_pytorchs_but_for_the_threshold(walk, precision, agree, options):
    """PyTorch's RAdam takes bare momentum up to ρ_t = 5, ours up to 4 as the paper: that step differs, all others
    agree. ε stands beside another root, which float64 sees in the eleventh digit."""

    def make(matrices, others):
        return torch.optim.RAdam([*matrices, *others], 1.0, betas(options), eps=1e-9)

    ours, theirs = walk({"name": "radam", **options}, make)
    beta2 = betas(options)[1]
    longest = 2 / (1 - beta2) - 1
    length = [longest - 2 * t * beta2**t / (1 - beta2**t) for t in range(2, len(RATES) + 1)]
    between = np.array([4 < number <= 5 for number in length])
    assert between.sum() == (0 if longest <= 4 else 1)
    mine, other = np.diff(ours, axis=0), np.diff(theirs, axis=0)
    agree(ours[0], theirs[0])
    agree(mine[~between], other[~between], max(1e-10, precision.tolerance))
    assert not between.any() or np.abs(mine[between] - other[between]).max() > 1e-3


@pytest.mark.parametrize("options", [{}, {**BETAS, "weight_decay": 0.3}], ids=str)
def test_lion_is_lion_pytorch(walk, agree, options):
    """Ours decays parameters of two dimensions alone."""
    peer = pytest.importorskip("lion_pytorch")

    def make(matrices, others):
        decay = options.get("weight_decay", 0.0)
        groups = [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]
        return peer.Lion(groups, 1.0, (options.get("beta1", 0.9), options.get("beta2", 0.99)))

    agree(*walk({"name": "lion", **options}, make))


@pytest.mark.parametrize("options", [{}, {"relative": True}, {"decay": 0.5, "clip": 0.3}], ids=str)
def test_adafactor_is_that_of_transformers(walk, agree, options):
    peer = pytest.importorskip("transformers.optimization")

    def make(matrices, others):
        return peer.Adafactor(
            [*matrices, *others], lr=1.0, eps=(1e-30, 1e-3), clip_threshold=options.get("clip", 1.0),
            decay_rate=-options.get("decay", 0.8), scale_parameter=options.get("relative", False), relative_step=False,
            warmup_init=False,
        )  # fmt: skip

    agree(*walk({"name": "adafactor", **options}, make))


MUON = pytest.mark.parametrize(
    "options", [{}, {"momentum": 0.8, "nesterov": False, "weight_decay": 0.3, "iterations": 3}], ids=str
)


def pytorchs_muon(options):
    def make(matrices, others):
        return torch.optim.Muon(
            matrices, 1.0, options.get("weight_decay", 0.01), options.get("momentum", 0.95), options.get("nesterov", True),
            ns_steps=options.get("iterations", 5), adjust_lr_fn="match_rms_adamw",
        )  # fmt: skip

    return make


@MUON
def test_muon_is_pytorchs_without_its_rounding(walk, agree, monkeypatch, options):
    """The same code with its conversion to bfloat16 made a copy: `x.bfloat16()` before PyTorch 2.15, `x.to(dtype=…)`
    since. The norm of a matrix is bounded from below by 1e-7 in the one and has 1e-7 added in the other."""
    to = torch.Tensor.to

    def exact(x, *arguments, dtype=None, **options):
        return to(x, *arguments, dtype=x.dtype if dtype is torch.bfloat16 else dtype, **options)

    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)
    monkeypatch.setattr(torch.Tensor, "to", exact)
    agree(*walk({"name": "muon", **options}, pytorchs_muon(options), MATRICES), 1e-5)


SGD = [
    {},
    {"momentum": 0.0},
    {"momentum": 0.8, "nesterov": True},
    {"momentum": 0.0, "weight_decay": 0.3},
    {"momentum": 0.8, "weight_decay": 0.3},
    {"momentum": 0.8, "nesterov": True, "weight_decay": 0.3},
]


@pytest.mark.parametrize("options", SGD, ids=str)
def test_sgd_is_pytorchs(walk, precision, agree, options):
    """PyTorch adds a decay to the gradient, so that momentum sums it too; ours is apart from it, for parameters of two
    dimensions alone. Without momentum they are the same; with it PyTorch's own step follows the decay."""
    decay, momentum = options.get("weight_decay", 0.0), options.get("momentum", 0.9)

    def make(matrices, others):
        groups = [{"params": matrices, "weight_decay": 0.0 if momentum else decay}, {"params": others}]
        optimizer = torch.optim.SGD(groups, 1.0, momentum, nesterov=options.get("nesterov", False))
        if momentum:
            optimizer.register_step_pre_hook(lambda optimizer, *_: decayed(optimizer.param_groups[0], decay))
        return optimizer

    agree(*walk({"name": "sgd", **options}, make), precision.tolerance)


def decayed(group, decay):
    with torch.no_grad():
        for parameter in group["params"]:
            parameter.mul_(1.0 - group["lr"] * decay)


@pytest.mark.parametrize("options", [{}, {**BETAS, "epsilon": 1e-2, "weight_decay": 0.3}], ids=str)
def test_schedule_free_is_its_authors(walk, precision, agree, options):
    """While it is trained, at y. Ours decays parameters of two dimensions alone."""
    peer = pytest.importorskip("schedulefree")

    def make(matrices, others):
        groups = [
            {"params": matrices, "weight_decay": options.get("weight_decay", 0.0)},
            {"params": others, "weight_decay": 0.0},
        ]
        pair = options.get("beta1", 0.9), options.get("beta2", 0.999)
        optimizer = peer.AdamWScheduleFree(groups, 1.0, pair, eps=options.get("epsilon", 1e-8))
        optimizer.train()
        return optimizer

    agree(*walk({"name": "schedule_free", **options}, make), precision.tolerance)
