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

from paddle_tfm.protocols import LayerSite, PositionalEncoding, Profile, TokenInfo

DECODER_SITES = [DECODER, CROSS, FEED_FORWARD]
ENCODER_SITES = [ENCODER, LayerSite("encoder", "feed_forward", 0, 2, 3)]


def admin(x, branches, norms, w):
    omegas = [w[f"omegas.{i}"] for i in range(len(branches))]
    return paper.admin(x, branches, norms, omegas)


def without_parameters(equation):
    return lambda x, branches, norms, w: equation(x, branches, norms)


def norm_of(w, name):
    return functools.partial(paper.layer_norm, weight=w[f"{name}.weight"], bias=w[f"{name}.bias"])


def sandwich(x, branches, norms, w):
    """x ← x + LN(f(LN(x))): 2105.13290, Sandwich-LN, pre-norm with one more LN at the end of each residual branch."""
    for i, (f, n) in enumerate(zip(branches, norms)):
        x = x + norm_of(w, f"branch_norms.{i}")(f(n(x)))
    return x


def peri(x, branches, norms, w):
    """y_0 = Norm(x_0), y ← y + Norm(Module(Norm(y))): 2502.02732, Peri-LN with the optional norm of the embeddings."""
    return sandwich(norm_of(w, "embedding_norm")(x), branches, norms, w)


def deepnorm_constants(stack, n, m):
    """α and β for n encoder and m decoder layers: 2203.00555, figure 2."""
    if stack == "encoder":
        if m == 0:
            return (2 * n) ** (1 / 4), (8 * n) ** (-1 / 4)
        return 0.81 * (n**4 * m) ** (1 / 16), 0.87 * (n**4 * m) ** (-1 / 16)
    if n == 0:
        return (2 * m) ** (1 / 4), (8 * m) ** (-1 / 4)
    return (3 * m) ** (1 / 4), (12 * m) ** (-1 / 4)


def deepnorm(x, branches, norms, w):
    """x ← LN(α x + f(x)): 2203.00555, figure 2; the sites below are those of 2 + 3 layers."""
    alpha, _ = deepnorm_constants({2: "encoder", 3: "decoder"}[len(branches)], 2, 3)
    for f, n in zip(branches, norms):
        x = n(alpha * x + f(x))
    return x


def rezero(x, branches, norms, w):
    """x_{i+1} = x_i + α_i F(x_i): 2003.04887, equation 1; all sublayers of a layer have one α (the authors' code)."""
    for f in branches:
        x = x + w["gates.0"] * f(x)
    return x


def layer_scale(x, branches, norms, w):
    """x' = x + diag(λ_1, …, λ_d) f(η(x)): 2103.17239, section 2, LayerScale."""
    for i, (f, n) in enumerate(zip(branches, norms)):
        x = x + f(n(x)) @ np.diag(w[f"scales.{i}"])
    return x


REFERENCES = {
    "post": without_parameters(paper.post_norm),
    "pre": without_parameters(paper.pre_norm),
    "res_post": without_parameters(paper.res_post_norm),
    "parallel": without_parameters(paper.parallel),
    "sub_ln": without_parameters(paper.pre_norm),  # what sets it apart stands inside the branches: below, and per kind
    "admin": admin,
    "sandwich": sandwich,
    "peri": peri,
    "deepnorm": deepnorm,
    "rezero": rezero,
    "layer_scale": layer_scale,
}
WITHOUT_FINAL_NORM = {"post", "admin", "deepnorm", "rezero"}
NORMS = {"parallel": (1, 1), "rezero": (0, 0), "sandwich": (4, 6), "peri": (5, 7)}  # of an encoder and a decoder layer


def norm_factory(registry, name="layer"):
    return lambda site, width: registry.build("norm", name, d_model=width, site=site, max_length=MAX_LENGTH)


def place(build, registry, name, sites):
    return build("placement", name, d_model=D_MODEL, dropout=0.0, sites=sites, norm=norm_factory(registry))


def norms_of(w, count):
    return [norm_of(w, f"norms.{i}") for i in range(count)]


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

    info = TokenInfo(PositionalEncoding(), positions(LENGTH), precision.tensor(VALID))
    ours = placement(precision.tensor(x), [functools.partial(ours_branch, i) for i in range(len(sites))], info)
    branches = [lambda y, matrix=matrix: np.tanh(y @ matrix) for matrix in matrices]
    assert len([key for key in w if key.endswith("weight")]) == NORMS.get(name, (2, 3))[len(sites) - 2]
    count = min(len(sites), NORMS.get(name, (2, 3))[0 if len(sites) == 2 else 1])
    precision.same(ours, REFERENCES[name](x, branches, norms_of(w, count), w))
    assert called == list(range(len(sites)))


@pytest.mark.parametrize("name", REFERENCES)
def test_stack_ends_with_a_norm_where_the_papers_does(registry, name):
    """2002.04745, table 1: after Pre-LN's last layer stands a final norm; Post-LN has none, for it just normalized. ReZero
    does without any."""
    placement = registry.entry("placement", name).load()
    assert placement.final_norm is (name not in WITHOUT_FINAL_NORM)
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


# --------------------------------------------------------------------------------------------------------- DeepNorm


@pytest.mark.parametrize("encoder_layers, decoder_layers", [(6, 6), (2, 3), (18, 1), (100, 0), (0, 100)])
def test_deepnorm_constants_are_the_papers(registry, encoder_layers, decoder_layers):
    for stack, layers in (("encoder", encoder_layers), ("decoder", decoder_layers)):
        if layers:
            sites = [LayerSite(stack, "self", 0, encoder_layers, decoder_layers)]
            placement = registry.build(
                "placement", "deepnorm", d_model=D_MODEL, dropout=0.0, sites=sites, norm=norm_factory(registry)
            )
            expected = deepnorm_constants(stack, encoder_layers, decoder_layers)
            assert (placement.alpha, placement.branch_gain) == pytest.approx(expected, rel=1e-12)


# ------------------------------------------------------------------------------------------- ReZero and LayerScale


@pytest.mark.parametrize("name, initial", [("rezero", 0.0), ("layer_scale", 0.1)])
def test_what_opens_a_branch_starts_where_the_papers_does(registry, name, initial):
    """2003.04887: α = 0. 2103.17239: ε = 0.1 up to 18 layers."""
    placement = registry.build(
        "placement", name, d_model=D_MODEL, dropout=0.0, sites=DECODER_SITES, norm=norm_factory(registry)
    )
    opening = [value for key, value in parameters(placement).items() if key.startswith(("gates", "scales"))]
    assert len(opening) == (1 if name == "rezero" else 3)
    for value in opening:
        np.testing.assert_allclose(value, initial, rtol=1e-6)


# ----------------------------------------------------------------------------------------------------------- Sub-LN


@pytest.mark.parametrize("encoder_layers, decoder_layers", [(6, 6), (2, 3), (18, 1)])
def test_sub_ln_gain_is_the_papers(registry, encoder_layers, decoder_layers):
    for stack, sublayers in (("encoder", ["self", "feed_forward"]), ("decoder", ["self", "cross", "feed_forward"])):
        sites = [LayerSite(stack, sublayer, 0, encoder_layers, decoder_layers) for sublayer in sublayers]
        placement = registry.build(
            "placement", "sub_ln", d_model=D_MODEL, dropout=0.0, sites=sites, norm=norm_factory(registry)
        )
        expected = paper.sub_ln_gain(stack, encoder_layers, decoder_layers)
        assert placement.branch_gain == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("stack, encoder_layers, decoder_layers", [("encoder", 12, 0), ("decoder", 0, 12)])
def test_sub_ln_gain_of_a_single_stack_is_the_papers(registry, stack, encoder_layers, decoder_layers):
    """2210.06423, figure 2: sqrt(log 2N) and sqrt(log 2M)."""
    sites = [LayerSite(stack, "self", 0, encoder_layers, decoder_layers)]
    placement = registry.build(
        "placement", "sub_ln", d_model=D_MODEL, dropout=0.0, sites=sites, norm=norm_factory(registry)
    )
    assert placement.branch_gain == pytest.approx(np.sqrt(np.log(24)), rel=1e-12)


def test_branch_gain_scales_what_the_papers_scale(registry):
    """Of Sub-LN and of DeepNorm: the feed-forward matrices, and the value and output projections; not those of queries
    and keys. Gated networks and mixtures are not in the papers."""
    givens = {"d_model": D_MODEL, "num_heads": HEADS, "dropout": 0.0, "d_ff": D_FF, "site": ENCODER}
    scaled = {
        "multihead": ("attention", {"value.weight", "output.weight"}),
        "full_width_heads": ("attention", {"value.weight", "output.weight"}),
        "linear": ("attention", {"value.weight", "output.weight"}),
        "relu": ("feed_forward", {"inner.weight", "output.weight"}),
        "gelu": ("feed_forward", {"inner.weight", "output.weight"}),
        "relu_squared": ("feed_forward", {"inner.weight", "output.weight"}),
    }
    for name, (kind, expected) in scaled.items():
        component = registry.build(kind, name, **givens)
        named = {id(parameter): path for path, parameter in component.named_parameters()}
        assert {named[id(weight)] for weight in component.branch_weights()} == expected, name
