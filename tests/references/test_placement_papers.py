"""Every placement against its paper's formula, around branches that are known functions, one layer of three."""

import functools

import numpy as np
import paddle
import paper_equations as paper
import pytest
from paper_cases import (
    CROSS,
    D_FF,
    D_MODEL,
    DECODER,
    ENCODER,
    FEED_FORWARD,
    HEADS,
    LENGTH,
    MAX_LENGTH,
    VALID,
    parameters,
    positions,
)

from paddle_tfm.protocols import At, PositionalEncoding, Profile, Site

DECODER_SITES = [DECODER, CROSS, FEED_FORWARD]
ENCODER_SITES = [ENCODER, Site("encoder", "feed_forward", 0, 2, 3)]


def admin(x, branches, norms, w):
    omegas = [w[f"omegas.{i}"] for i in range(len(branches))]
    return paper.admin(x, branches, norms, omegas)


def without_parameters(equation):
    return lambda x, branches, norms, w: equation(x, branches, norms)


REFERENCES = {
    "post": without_parameters(paper.post_norm),
    "pre": without_parameters(paper.pre_norm),
    "res_post": without_parameters(paper.res_post_norm),
    "parallel": without_parameters(paper.parallel),
    "sub_ln": without_parameters(paper.pre_norm),  # what sets it apart stands inside the branches: below, and per kind
    "admin": admin,
}
ENDS_WITH_NORM = {"post": False, "pre": True, "res_post": True, "parallel": True, "sub_ln": True, "admin": False}


def norm_factory(registry, name="layer"):
    return lambda site, width: registry.build("norm", name, d_model=width, site=site, max_length=MAX_LENGTH)


def place(build, registry, name, sites):
    return build("placement", name, d_model=D_MODEL, dropout=0.0, sites=sites, norm=norm_factory(registry))


def norms_of(w, count):
    return [
        functools.partial(paper.layer_norm, weight=w[f"norms.{i}.weight"], bias=w[f"norms.{i}.bias"])
        for i in range(count)
    ]


@pytest.mark.parametrize("sites", [ENCODER_SITES, DECODER_SITES], ids=["encoder", "decoder"])
@pytest.mark.parametrize("name", REFERENCES)
def test_placement_is_the_papers(build, registry, precision, rng, name, sites):
    placement, w = place(build, registry, name, sites)
    placement.eval()
    matrices = [rng.normal(scale=0.4, size=(D_MODEL, D_MODEL)) for _ in sites]
    x = rng.normal(size=(3, LENGTH, D_MODEL))
    called = []

    def ours_branch(i, y):
        called.append(i)
        return paddle.tanh(y @ precision.tensor(matrices[i]))

    at = At(PositionalEncoding(), positions(LENGTH), precision.tensor(VALID))
    ours = placement(precision.tensor(x), [functools.partial(ours_branch, i) for i in range(len(sites))], at)
    branches = [lambda y, matrix=matrix: np.tanh(y @ matrix) for matrix in matrices]
    count = 1 if name == "parallel" else len(sites)
    assert len([key for key in w if key.endswith("weight")]) == count
    precision.same(ours, REFERENCES[name](x, branches, norms_of(w, count), w))
    assert called == list(range(len(sites)))


@pytest.mark.parametrize("name", REFERENCES)
def test_stack_ends_with_a_norm_where_the_papers_does(registry, name):
    """2002.04745, table 1: after Pre-LN's last layer stands a final norm; Post-LN has none, for it just normalized."""
    placement = registry.entry("placement", name).load()
    assert placement.final_norm is ENDS_WITH_NORM[name]
    assert placement.inner_norm is (name == "sub_ln")


# ------------------------------------------------------------------------------------------------------------ Admin


def test_admin_starts_as_post_norm(registry):
    """2004.08249, section 4: ω is 1 while profiling."""
    placement = registry.build(
        "placement", "admin", d_model=D_MODEL, dropout=0.0, sites=DECODER_SITES, norm=norm_factory(registry)
    )
    for name, value in parameters(placement).items():
        if name.startswith("omegas"):
            assert (value == 1).all()


def test_admin_calibration_is_the_papers(registry):
    cls = registry.entry("placement", "admin").load()
    placements = [
        registry.build("placement", "admin", d_model=D_MODEL, dropout=0.0, sites=DECODER_SITES, norm=norm_factory(registry))
        for _ in range(2)
    ]  # fmt: skip
    variances = [0.5, 2.0, 0.25, 1.0, 3.0, 0.125]
    cls.calibrate(placements, Profile(0.8, variances))
    omegas = [value for placement in placements for name, value in parameters(placement).items() if "omegas" in name]
    for omega, expected in zip(omegas, paper.admin_omegas(0.8, variances), strict=True):
        np.testing.assert_allclose(omega, np.full(D_MODEL, expected), rtol=1e-6)


# ----------------------------------------------------------------------------------------------------------- Sub-LN


@pytest.mark.parametrize("encoder_layers, decoder_layers", [(6, 6), (2, 3), (18, 1)])
def test_sub_ln_gain_is_the_papers(registry, encoder_layers, decoder_layers):
    for stack, sublayers in (("encoder", ["self", "feed_forward"]), ("decoder", ["self", "cross", "feed_forward"])):
        sites = [Site(stack, sublayer, 0, encoder_layers, decoder_layers) for sublayer in sublayers]
        placement = registry.build(
            "placement", "sub_ln", d_model=D_MODEL, dropout=0.0, sites=sites, norm=norm_factory(registry)
        )
        expected = paper.sub_ln_gain(stack, encoder_layers, decoder_layers)
        assert placement.branch_gain == pytest.approx(expected, rel=1e-12)


def test_sub_ln_gain_scales_what_the_paper_scales(registry):
    """The feed-forward matrices, and the value and output projections; not those of queries and keys. Gated networks
    and mixtures are not in the paper."""
    given = {"d_model": D_MODEL, "num_heads": HEADS, "dropout": 0.0, "d_ff": D_FF, "site": ENCODER}
    scaled = {
        "multihead": ("attention", {"value.weight", "output.weight"}),
        "full_width_heads": ("attention", {"value.weight", "output.weight"}),
        "linear": ("attention", {"value.weight", "output.weight"}),
        "relu": ("feed_forward", {"inner.weight", "output.weight"}),
        "gelu": ("feed_forward", {"inner.weight", "output.weight"}),
    }
    for name, (kind, expected) in scaled.items():
        component = registry.build(kind, name, **given)
        named = {id(parameter): path for path, parameter in component.named_parameters()}
        assert {named[id(weight)] for weight in component.branch_weights()} == expected, name
