"""Every shipped placement against its formula, with norms and sublayers that NumPy repeats."""

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import LayerSite, Norm, PositionalEncoding, TokenInfo
from paddle_tfm_plugins.placement.admin import Admin
from paddle_tfm_plugins.placement.deepnorm import DeepNorm
from paddle_tfm_plugins.placement.layer_scale import LayerScale
from paddle_tfm_plugins.placement.parallel import Parallel
from paddle_tfm_plugins.placement.peri import Peri
from paddle_tfm_plugins.placement.post import Post
from paddle_tfm_plugins.placement.pre import Pre
from paddle_tfm_plugins.placement.res_post import ResPost
from paddle_tfm_plugins.placement.rezero import ReZero
from paddle_tfm_plugins.placement.sandwich import Sandwich
from paddle_tfm_plugins.placement.sub_ln import SubLN

C = 4
SITES = [LayerSite("decoder", name, 1, 2, 3) for name in ("self", "cross", "feed_forward")]
ALL = [Pre, Post, ResPost, Sandwich, Peri, Parallel, SubLN, Admin, DeepNorm, ReZero, LayerScale]
GATE = 0.4  # where a learned number that starts at zero, or close to it, is set to for these tests
every = pytest.mark.parametrize("cls", ALL)


class Affine(Norm):
    """factor · x + 0.5, the factor another for each instance; remembers how it was called."""

    def __init__(self, site, width):
        super().__init__()
        self.site, self.width, self.calls = site, width, []
        self.factor = self.create_parameter([1])
        self.factor.set_value(paddle.to_tensor([{"self": 2.0, "cross": -1.5, "feed_forward": 0.7}[site.sublayer]]))

    def forward(self, x, valid=None, positions=None):
        self.calls.append((valid, positions))
        return x * self.factor + 0.5


class Toy:
    """Sublayers f_i(x) = a_i x + b_i that count their calls."""

    def __init__(self):
        self.inputs = [[], [], []]

    def sublayers(self):
        def sublayer(i):
            def call(x):
                self.inputs[i].append(x.numpy())
                return f(i, x)

            return call

        return [sublayer(i) for i in range(3)]


def f(i, x):
    return (0.3 + i) * x + 1.0 - i


def n(i, x):
    return [2.0, -1.5, 0.7][i] * x + 0.5


FORMULAS = {
    Pre: lambda i, x: x + f(i, n(i, x)),
    Post: lambda i, x: n(i, x + f(i, x)),
    ResPost: lambda i, x: x + n(i, f(i, x)),
    SubLN: lambda i, x: x + f(i, n(i, x)),
    Admin: lambda i, x: n(i, x + f(i, x)),
    Sandwich: lambda i, x: x + n(i, f(i, n(i, x))),
    Peri: lambda i, x: x + n(i, f(i, n(i, x))),  # of a layer that is not the first
    DeepNorm: lambda i, x: n(i, (3 * 3) ** 0.25 * x + f(i, x)),
    ReZero: lambda i, x: x + GATE * f(i, x),
    LayerScale: lambda i, x: x + GATE * f(i, n(i, x)),
}


def expected(cls, x):
    if cls is Parallel:
        return x + sum(f(i, n(0, x)) for i in range(3))
    for i in range(3):
        x = FORMULAS[cls](i, x)
    return x


def opened(placement):
    for parameter in placement.parameters():
        if getattr(parameter, "keep_initial", False):
            parameter.set_value(paddle.full_like(parameter, GATE))
    return placement


def make(cls, dropout=0.0):
    return opened(cls(sites=SITES, norm=Affine, d_model=C, dropout=dropout))


def inputs():
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(2, 3, C)).astype("float32"))
    return x, TokenInfo(PositionalEncoding(), paddle.arange(3).unsqueeze(0), paddle.ones([2, 3], "bool"))


@every
def test_it_is_the_formula(cls):
    x, here = inputs()
    out = make(cls)(x, Toy().sublayers(), here)
    np.testing.assert_allclose(out.numpy(), expected(cls, x.numpy()), rtol=1e-5, atol=1e-5)


@every
def test_each_sublayer_is_called_once(cls):
    toy, (x, here) = Toy(), inputs()
    make(cls)(x, toy.sublayers(), here)
    assert [len(seen) for seen in toy.inputs] == [1, 1, 1]


@every
def test_every_norm_is_an_instance_of_its_own_and_knows_what_is_real(cls):
    placement, (x, here) = make(cls), inputs()
    placement(x, Toy().sublayers(), here)
    norms = [part for part in placement.sublayers() if isinstance(part, Affine)]
    sites = {Parallel: SITES[:1], ReZero: [], Sandwich: SITES * 2, Peri: SITES * 2}
    assert [norm.site for norm in norms] == sites.get(cls, SITES)
    for norm in norms:
        assert norm.width == C
        ((valid, positions),) = norm.calls
        assert valid is here.valid and positions is here.positions


@every
def test_every_parameter_gets_a_gradient(cls):
    placement, (x, here) = make(cls), inputs()
    (placement(x, Toy().sublayers(), here) * paddle.randn([2, 3, C])).sum().backward()
    assert placement.parameters()
    for name, parameter in placement.named_parameters():
        assert parameter.grad is not None and np.abs(parameter.grad.numpy()).max() > 1e-5, name


@every
def test_dropout_falls_on_the_branch_and_not_on_the_residual(cls):
    """A branch of ones: dropout of a half leaves 0 or 2 of it, times its scale; a residual of fives stays, times
    its."""
    paddle.seed(1)
    placement = opened(cls(sites=SITES[:1], norm=lambda site, width: Same(), d_model=C, dropout=0.5))
    _, here = inputs()
    placement.train()
    residual = paddle.full([2, 3, C], 5.0)
    kept, branch = 5.0 * getattr(placement, "alpha", 1.0), GATE if cls in (ReZero, LayerScale) else 1.0
    out = placement(residual, [lambda x: paddle.ones_like(x)], here) - kept
    np.testing.assert_allclose(np.unique(out.numpy().round(5)), [0.0, 2.0 * branch], rtol=1e-5)
    placement.eval()
    out = placement(residual, [lambda x: paddle.ones_like(x)], here)
    np.testing.assert_allclose(out.numpy(), np.full([2, 3, C], kept + branch), rtol=1e-6)


class Same(Norm):
    def forward(self, x, valid=None, positions=None):
        return x


@every
def test_where_the_stack_ends_with_a_norm(cls):
    assert cls.final_norm is (cls not in (Post, Admin, DeepNorm, ReZero))
    assert cls.inner_norm is (cls is SubLN)


@every
def test_a_gradient_reaches_the_input_past_dead_branches(cls):
    placement, (x, here) = make(cls), inputs()
    x.stop_gradient = False
    placement(x, [lambda y: y * 0.0] * 3, here).sum().backward()
    assert np.abs(x.grad.numpy()).min() > 0
