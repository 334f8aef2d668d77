"""Synthesizer, recurrent network and convolution with a norm in front of the output matrix."""

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
sites = pytest.mark.parametrize("site", [ENCODER, DECODER], ids=str)


def compare(attention, precision, site, rng, name, w, **more):
    x = rng.normal(size=(*VALID.shape, D_MODEL))
    ours = attend(attention, precision, site, x, VALID, x, VALID)
    precision.same(ours, REFERENCES[name](x, VALID, w, causal=site.causal, **more))


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
