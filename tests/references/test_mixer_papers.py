"""What stands in the place of dot-product attention against its paper's equations: synthesized weights, a recurrent
network, a convolution. All of them look at one text, so that there is no cross-attention."""

import functools

import attention_numpy as twins
import paper_equations as paper
import pytest
from paper_cases import D_MODEL, DECODER, ENCODER, HEADS, MAX_LENGTH, VALID, attend

REFERENCES = {
    "synthesizer": functools.partial(twins.synthesizer, heads=HEADS, max_length=MAX_LENGTH),
    "recurrent": twins.recurrent,
    "convolution": functools.partial(twins.convolution, heads=HEADS),
}

GIVEN = {"d_model": D_MODEL, "num_heads": HEADS, "dropout": 0.0, "max_length": MAX_LENGTH}
SPECS = [
    {"name": "synthesizer"},
    {"name": "synthesizer", "bias": False},
    {"name": "synthesizer", "hidden": 7},
    {"name": "synthesizer", "mode": "random"},
    {"name": "synthesizer", "mode": "random", "rank": 5},
    {"name": "recurrent"},
    {"name": "recurrent", "hidden": 8},
    {"name": "convolution"},
    {"name": "convolution", "kernel": 5},
    {"name": "convolution", "kernel": 3, "bias": False},
    {"name": "convolution", "dynamic": True},
    {"name": "convolution", "kernel": 3, "dynamic": True},
]
sites = pytest.mark.parametrize("site", [ENCODER, DECODER], ids=str)
specs = pytest.mark.parametrize("spec", SPECS, ids=str)


def compare(attention, precision, site, rng, name, w, **more):
    x = rng.normal(size=(*VALID.shape, D_MODEL))
    ours = attend(attention, precision, site, x, VALID, x, VALID)
    precision.same(ours, REFERENCES[name](x, VALID, w, causal=site.causal, **more))


@sites
@specs
def test_it_is_the_papers(build, precision, rng, spec, site):
    attention, w = build("attention", spec, **GIVEN, site=site)
    assert any("bias" in key for key in w) is spec.get("bias", True)
    compare(attention, precision, site, rng, spec["name"], w)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_kernel_of_even_width_ends_at_the_token(build, precision, rng, dynamic):
    attention, w = build("attention", {"name": "convolution", "kernel": 4, "dynamic": dynamic}, **GIVEN, site=DECODER)
    compare(attention, precision, DECODER, rng, "convolution", w)


@sites
@pytest.mark.parametrize("options", [{}, {"mode": "random"}, {"mode": "random", "rank": 2}], ids=str)
def test_positions_beyond_the_last_share_its_weights(build, precision, rng, options, site):
    spec = {"name": "synthesizer", **options}
    attention, w = build("attention", spec, **{**GIVEN, "max_length": 4}, site=site)
    compare(attention, precision, site, rng, "synthesizer", w, max_length=4)


@sites
@pytest.mark.parametrize("spec", [*REFERENCES, {"name": "recurrent", "hidden": 8}], ids=str)
def test_sub_ln_normalizes_what_comes_before_the_output_matrix(build, registry, precision, rng, spec, site):
    attention, w = build(
        "attention", spec, **GIVEN, site=site, inner_norm=lambda width: registry.build("norm", "layer", d_model=width)
    )
    weight, bias = w.pop("inner_norm.weight"), w.pop("inner_norm.bias")
    assert weight.shape == w["output.weight"].shape[:1]
    name = spec if isinstance(spec, str) else spec["name"]
    compare(attention, precision, site, rng, name, w, inner=lambda y: paper.layer_norm(y, weight, bias))


@pytest.mark.parametrize(
    "spec, site, shapes",
    [
        ("synthesizer", ENCODER, {"hidden": (12, 12), "columns": (3, 16, 4), "column_bias": (3, 16, 1), "value": (12, 12), "output": (12, 12)}),
        ({"name": "synthesizer", "mode": "random"}, ENCODER, {"rows": (3, 16, 16), "value": (12, 12), "output": (12, 12)}),
        ({"name": "synthesizer", "mode": "random", "rank": 2}, ENCODER, {"rows": (3, 16, 2), "columns": (3, 16, 2), "value": (12, 12), "output": (12, 12)}),
        ("recurrent", DECODER, {"ahead.input": (4, 12, 12), "ahead.hidden": (4, 12, 12), "output": (12, 12)}),
        ("recurrent", ENCODER, {"ahead.input": (4, 6, 12), "ahead.hidden": (4, 6, 6), "back.input": (4, 6, 12), "back.hidden": (4, 6, 6), "output": (12, 12)}),
        ("convolution", DECODER, {"value": (12, 12), "gate": (12, 12), "weight": (3, 7), "output": (12, 12)}),
        ({"name": "convolution", "kernel": 5, "dynamic": True}, ENCODER, {"value": (12, 12), "gate": (12, 12), "predict": (12, 15), "output": (12, 12)}),
    ],
    ids=str,
)  # fmt: skip
def test_matrices_have_the_papers_widths(build, spec, site, shapes):
    _, w = build("attention", spec, **GIVEN, site=site)
    assert {name.removesuffix(".weight"): array.shape for name, array in w.items() if array.ndim > 1} == shapes
