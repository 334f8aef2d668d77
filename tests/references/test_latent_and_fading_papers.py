"""Latent, forgetting and delta-rule attention beyond their formulas: norms inside, rotation, and where they start."""

import functools

import attention_numpy as twins
import paper_equations as paper
import pytest
from paper_cases import CROSS, D_MODEL, DECODER, ENCODER, HEADS, MAX_LENGTH, VALID, attend, sentences

REFERENCES = {
    "mla": functools.partial(twins.mla, heads=HEADS),
    "forgetting": functools.partial(twins.forgetting, heads=HEADS),
    "gated_deltanet": functools.partial(twins.gated_deltanet, heads=HEADS),
    "kimi_delta": functools.partial(twins.kimi_delta, heads=HEADS),
}

GIVEN = {"d_model": D_MODEL, "num_heads": HEADS, "dropout": 0.0, "max_length": MAX_LENGTH}


def compare(attention, precision, site, rng, reference, w, encoding=None):
    x, x_valid, source, source_valid = sentences(rng, site)
    ours = attend(attention, precision, site, x, x_valid, source, source_valid, encoding)
    expected = reference(x, source, w, paper.visible(source_valid, x.shape[1], site.causal))
    precision.same(ours[precision.tensor(x_valid)], expected[x_valid])


def test_what_is_forgotten_may_be_rotated(build, precision, rng):
    attention, w = build("attention", "forgetting", **GIVEN, site=DECODER)
    encoding, _ = build("position", "rotary", head_dim=D_MODEL // HEADS)
    x = rng.normal(size=(*VALID.shape, D_MODEL))
    ours = attend(attention, precision, DECODER, x, VALID, x, VALID, encoding)
    precision.same(ours[precision.tensor(VALID)], REFERENCES["forgetting"](x, VALID, w, base=10000.0)[VALID])


@pytest.mark.parametrize("name", REFERENCES)
def test_sub_ln_normalizes_what_comes_before_the_output_matrix(build, registry, precision, rng, name):
    attention, w = build(
        "attention",
        name,
        **GIVEN,
        site=DECODER,
        inner_norm=lambda width: registry.build("norm", "layer", d_model=width),
    )
    weight, bias = w.pop("inner_norm.weight"), w.pop("inner_norm.bias")
    assert weight.shape == w["output.weight"].shape[:1]
    reference = functools.partial(REFERENCES[name], inner=lambda y: paper.layer_norm(y, weight, bias))
    if name == "mla":
        compare(attention, precision, DECODER, rng, reference, w)
        return
    x = rng.normal(size=(*VALID.shape, D_MODEL))
    ours = attend(attention, precision, DECODER, x, VALID, x, VALID)
    precision.same(ours[precision.tensor(VALID)], reference(x, VALID, w)[VALID])


@pytest.mark.parametrize("name", ["forgetting", "gated_deltanet", "kimi_delta"])
@pytest.mark.parametrize("site", [ENCODER, CROSS], ids=str)
def test_where_there_is_no_past_it_is_refused(registry, name, site):
    with pytest.raises(Exception, match="so it must stand in a decoder's self-attention"):
        registry.build("attention", name, **GIVEN, site=site)
