"""Norms with the weights of PyTorch's and x-transformers' own."""

import numpy as np
import paddle
import pytest
from peer_cases import D_MODEL, ENCODER, VALID, copy

pytestmark = pytest.mark.peers
torch = pytest.importorskip("torch")
EPS = 2.0**-10  # large, that it counts, and exact: Paddle's kernel of `layer` takes it as a float32 in float64 too


def both_ways(agree, precision, ours, theirs, x):
    """The same values, and the same gradients of Σ y · noise: without gradients `layer` takes another way."""
    noise = np.random.default_rng(5).normal(size=x.shape)
    mine, other = precision.ours(x), precision.theirs(x).requires_grad_()
    with paddle.no_grad():
        agree(ours(mine), theirs(other))
    mine.stop_gradient = False
    y, expected = ours(mine), theirs(other)
    agree(y.detach(), expected)
    (y * precision.ours(noise)).sum().backward()
    (expected * precision.theirs(noise)).sum().backward()
    agree(mine.grad, other.grad)
    expected = {name: parameter.grad.numpy() for name, parameter in theirs.named_parameters()}
    return {name: parameter.grad.numpy() for name, parameter in ours.named_parameters()}, expected


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no-bias"])
def test_layer_is_that_of_pytorch(build, precision, agree, rng, bias):
    ours, w = build("norm", {"name": "layer", "eps": EPS, "bias": bias}, d_model=D_MODEL, site=ENCODER)
    theirs = copy(torch.nn.LayerNorm(D_MODEL, eps=EPS, bias=bias), w)
    mine, expected = both_ways(agree, precision, ours, theirs, rng.normal(0.3, 0.2, size=(3, 7, D_MODEL)))
    assert mine.keys() == expected.keys()
    for name in mine:
        agree(mine[name], expected[name])


def test_rms_is_that_of_pytorch(build, precision, agree, rng):
    ours, w = build("norm", {"name": "rms", "eps": EPS}, d_model=D_MODEL, site=ENCODER)
    theirs = copy(torch.nn.RMSNorm(D_MODEL, eps=EPS), w)
    mine, expected = both_ways(agree, precision, ours, theirs, rng.normal(0.3, 0.2, size=(3, 7, D_MODEL)))
    agree(mine["weight"], expected["weight"])


class ByToken(torch.nn.Module):
    """A PyTorch norm of [N, C, positions] over each token by itself: [B, T, C] → the same."""

    def __init__(self, norm):
        super().__init__()
        self.norm = norm

    def forward(self, x):
        return self.norm(x.flatten(0, 1)).reshape(x.shape)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_group_is_that_of_pytorch(build, precision, agree, rng, groups):
    """torch.nn.GroupNorm gets one token at a time: over a sentence it would see the future."""
    ours, w = build("norm", {"name": "group", "groups": groups, "eps": EPS}, d_model=D_MODEL, site=ENCODER)
    theirs = ByToken(copy(torch.nn.GroupNorm(groups, D_MODEL, eps=EPS), w))
    both_ways(agree, precision, ours, theirs, rng.normal(0.3, 0.2, size=(3, 7, D_MODEL)))


def test_batch_is_that_of_pytorch_over_the_real_tokens(build, precision, agree, rng):
    """Three training steps, then evaluation; running statistics too. PyTorch gets the real tokens alone."""
    ours, w = build("norm", {"name": "batch", "momentum": 0.3}, d_model=D_MODEL, site=ENCODER)
    theirs = copy(torch.nn.BatchNorm1d(D_MODEL, momentum=0.3), w).train()
    ours.train()
    for step in range(3):
        x = rng.normal(step, 0.5 + step, size=(*VALID.shape, D_MODEL))
        noise = rng.normal(size=x.shape)
        mine, other = precision.ours(x), precision.theirs(x).requires_grad_()
        mine.stop_gradient = False
        y, expected = ours(mine, precision.ours(VALID)), theirs(other[torch.from_numpy(VALID)])
        agree(y.numpy()[VALID], expected)
        (y * precision.ours(noise)).sum().backward()
        (expected * precision.theirs(noise)[torch.from_numpy(VALID)]).sum().backward()
        agree(mine.grad, other.grad)
        agree(ours.running_mean, theirs.running_mean)
        agree(ours.running_variance, theirs.running_var)
    ours.eval()
    theirs.eval()
    agree(ours(precision.ours(x), precision.ours(VALID)).numpy()[VALID], theirs(precision.theirs(x[VALID])))


def test_scale_is_that_of_x_transformers(build, precision, agree, rng):
    """Its g starts at 1 and is multiplied by sqrt(C); ours starts at sqrt(C)."""
    modules = pytest.importorskip("x_transformers.x_transformers")
    ours, w = build("norm", "scale", d_model=D_MODEL, site=ENCODER)
    theirs = copy(modules.ScaleNorm(D_MODEL), {"g": w["weight"] / np.sqrt(D_MODEL)})
    both_ways(agree, precision, ours, theirs, rng.normal(0.3, 0.2, size=(3, 7, D_MODEL)))


def test_dyt_is_that_of_x_transformers(build, precision, agree, rng):
    modules = pytest.importorskip("x_transformers.x_transformers")
    ours, w = build("norm", "dyt", d_model=D_MODEL, site=ENCODER)
    arrays = {"pre_tanh_scale": w["alpha"].reshape(()), "gamma": w["weight"], "beta": w["bias"]}
    theirs = copy(modules.DynamicTanh(D_MODEL), arrays)
    mine, expected = both_ways(agree, precision, ours, theirs, rng.normal(0.3, 2.0, size=(3, 7, D_MODEL)))
    agree(np.append(mine["weight"], mine["alpha"]), np.append(expected["gamma"], expected["pre_tanh_scale"]))
