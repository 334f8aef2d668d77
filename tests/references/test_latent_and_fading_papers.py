"""Attentions that keep something else than keys and values, against their papers' equations: a latent, forget gates, a
memory that is corrected."""

import functools

import attention_numpy as twins
import numpy as np
import paper_equations as paper
import pytest
from paper_cases import CROSS, D_MODEL, DECODER, ENCODER, HEADS, MAX_LENGTH, SITES, VALID, attend, sentences

REFERENCES = {
    "mla": functools.partial(twins.mla, heads=HEADS),
    "forgetting": functools.partial(twins.forgetting, heads=HEADS),
    "gated_deltanet": functools.partial(twins.gated_deltanet, heads=HEADS),
}

GIVEN = {"d_model": D_MODEL, "num_heads": HEADS, "dropout": 0.0, "max_length": MAX_LENGTH}
LEFT = np.array([[True] * 6, [False] * 2 + [True] * 4, [True, False, False, True, True, False]])
CAUSAL = [
    {"name": "forgetting"},
    {"name": "forgetting", "bias": True},
    {"name": "forgetting", "head_dim": 6},
    {"name": "gated_deltanet"},
    {"name": "gated_deltanet", "expand": 1, "kernel": 1},
    {"name": "gated_deltanet", "expand": 3, "kernel": 2},
]
LATENT = [{}, {"latent": 5, "rotary_dim": 6}, {"query_latent": 5}, {"head_dim": 8}]


def compare(attention, precision, site, rng, reference, w, encoding=None):
    x, x_valid, source, source_valid = sentences(rng, site)
    ours = attend(attention, precision, site, x, x_valid, source, source_valid, encoding)
    expected = reference(x, source, w, paper.visible(source_valid, x.shape[1], site.causal))
    precision.same(ours[precision.tensor(x_valid)], expected[x_valid])


@pytest.mark.parametrize("site", SITES, ids=str)
@pytest.mark.parametrize("rotated", [False, True], ids=["none", "rotary"])
@pytest.mark.parametrize("options", LATENT, ids=str)
def test_latent_attention_is_the_papers(build, precision, rng, options, rotated, site):
    """With head_dim 8 the six queries are fewer than D: matrices are multiplied in the other order."""
    attention, w = build("attention", {"name": "mla", **options}, **GIVEN, site=site)
    width = w["rotated_key.weight"].shape[1]
    encoding = build("position", "rotary", head_dim=width)[0] if rotated else None
    base = 10000.0 if rotated else None
    compare(attention, precision, site, rng, functools.partial(REFERENCES["mla"], base=base), w, encoding)


@pytest.mark.parametrize("valid", [VALID, LEFT], ids=["right", "anywhere"])
@pytest.mark.parametrize("spec", CAUSAL, ids=str)
def test_it_is_the_papers(build, precision, rng, spec, valid):
    attention, w = build("attention", spec, **GIVEN, site=DECODER)
    x = rng.normal(size=(*valid.shape, D_MODEL))
    ours = attend(attention, precision, DECODER, x, valid, x, valid)
    precision.same(ours[precision.tensor(valid)], REFERENCES[spec["name"]](x, valid, w)[valid])


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


@pytest.mark.parametrize(
    "spec, shapes",
    [
        ("mla", {"query": (12, 12), "rotated_query": (12, 6), "latent": (12, 16), "rotated_key": (12, 2), "key": (16, 12), "value": (16, 12), "output": (12, 12)}),
        ({"name": "mla", "head_dim": 6, "query_latent": 7}, {"query_latent": (12, 7), "query": (7, 18), "rotated_query": (7, 9), "latent": (12, 24), "rotated_key": (12, 3), "key": (24, 18), "value": (24, 18), "output": (18, 12)}),
        ("forgetting", {"query": (12, 12), "key": (12, 12), "value": (12, 12), "output": (12, 12), "forget": (12, 3)}),
        ("gated_deltanet", {"query": (12, 12), "key": (12, 12), "value": (12, 24), "kernel": (4, 48), "fade": (12, 3), "write": (12, 3), "gate": (12, 24), "output": (24, 12)}),
    ],
    ids=str,
)  # fmt: skip
def test_matrices_have_the_papers_widths(build, spec, shapes):
    _, w = build("attention", spec, **GIVEN, site=DECODER)
    assert {name.removesuffix(".weight"): array.shape for name, array in w.items() if array.ndim == 2} == shapes


def test_fading_starts_where_the_authors_let_it(registry):
    """exp(a) in U(0, 16), softplus(b) between 0.001 and 0.1: of 400 heads, near both ends and nowhere beyond."""
    attention = registry.build(
        "attention", "gated_deltanet", **GIVEN | {"d_model": 400, "num_heads": 400}, site=DECODER
    )
    rate, step = np.exp(attention.log_rate.numpy()), np.log1p(np.exp(attention.fade_bias.numpy()))
    assert 0 < rate.min() < 1 and 15 < rate.max() <= 16 and abs(rate.mean() - 8) < 1.5
    assert 0.00099 < step.min() < 0.0012 and 0.08 < step.max() < 0.1001 and 0.006 < np.median(step) < 0.0166


@pytest.mark.parametrize("name", ["forgetting", "gated_deltanet"])
@pytest.mark.parametrize("site", [ENCODER, CROSS], ids=str)
def test_where_there_is_no_past_it_is_refused(registry, name, site):
    with pytest.raises(Exception, match="so it must stand in a decoder's self-attention"):
        registry.build("attention", name, **GIVEN, site=site)
