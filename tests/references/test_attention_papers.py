"""Every attention against its paper's equations: softmax and linear, in the encoder, the decoder and across."""

import functools

import numpy as np
import paper_equations as paper
import pytest
from paper_cases import D_MODEL, ENCODER, HEADS, MAX_LENGTH, SITES, attend, sentences

REFERENCES = {
    "multihead": functools.partial(paper.multi_head_attention, heads=HEADS),
    "full_width_heads": functools.partial(paper.multi_head_attention, heads=HEADS),
    "linear": functools.partial(paper.multi_head_linear_attention, heads=HEADS),
    "single_head": paper.single_head_attention,
}
GIVEN = {"d_model": D_MODEL, "num_heads": HEADS, "dropout": 0.0, "max_length": MAX_LENGTH}


def compare(attention, precision, site, rng, reference, w):
    x, x_valid, source, source_valid = sentences(rng, site)
    ours = attend(attention, precision, site, x, x_valid, source, source_valid)
    expected = reference(x, source, w, allowed=paper.visible(source_valid, x.shape[1], site.causal))
    precision.same(ours, expected)


@pytest.mark.parametrize("site", SITES, ids=str)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no-bias"])
@pytest.mark.parametrize("name", REFERENCES)
def test_attention_is_the_papers(build, precision, rng, name, site, bias):
    attention, w = build("attention", {"name": name, "bias": bias}, **GIVEN, site=site)
    assert any(key.endswith(".bias") for key in w) is bias
    compare(attention, precision, site, rng, REFERENCES[name], w)


@pytest.mark.parametrize(
    "spec, shapes",
    [
        ("multihead", {"query": (12, 12), "key": (12, 12), "value": (12, 12), "output": (12, 12)}),
        ({"name": "multihead", "head_dim": 6}, {"query": (12, 18), "key": (12, 18), "value": (12, 18), "output": (18, 12)}),
        ("full_width_heads", {"query": (12, 36), "key": (12, 36), "value": (12, 36), "output": (36, 12)}),
        ("single_head", {"query": (12, 12), "key": (12, 12), "value": (12, 12)}),
        ({"name": "single_head", "head_size": 5}, {"query": (12, 5), "key": (12, 5), "value": (12, 12)}),
    ],
    ids=str,
)  # fmt: skip
def test_matrices_have_the_papers_widths(build, spec, shapes):
    _, w = build("attention", spec, **GIVEN, site=ENCODER)
    assert {name.removesuffix(".weight"): array.shape for name, array in w.items() if array.ndim == 2} == shapes


@pytest.mark.parametrize("site", SITES, ids=str)
@pytest.mark.parametrize("spec", [{"name": "multihead", "head_dim": 6}, {"name": "single_head", "head_size": 5}], ids=str)  # fmt: skip
def test_scores_are_divided_by_the_root_of_the_heads_own_width(build, precision, rng, spec, site):
    attention, w = build("attention", spec, **GIVEN, site=site)
    compare(attention, precision, site, rng, REFERENCES[spec["name"]], w)


@pytest.mark.parametrize("name", ["multihead", "full_width_heads", "linear"])
def test_sub_ln_normalizes_the_joined_heads_before_the_output_matrix(build, registry, precision, rng, name):
    attention, w = build(
        "attention",
        name,
        **GIVEN,
        site=ENCODER,
        inner_norm=lambda width: registry.build("norm", "layer", d_model=width),
    )
    weight, bias = w.pop("inner_norm.weight"), w.pop("inner_norm.bias")
    assert weight.shape == w["output.weight"].shape[:1]

    def inner(y):
        return paper.layer_norm(y, weight, bias)

    compare(attention, precision, ENCODER, rng, functools.partial(REFERENCES[name], inner=inner), w)


def test_soft_lookup_worked_by_hand():
    values, weights = np.array([[10.0], [5.0], [2.0]]), np.array([0.6, 0.4, 0.0])
    keys = np.log(np.array([0.6, 0.4, 1e-300]))[:, None]
    assert weights @ values == pytest.approx(8.0)
    assert paper.scaled_dot_product_attention(np.ones((1, 1)), keys, values) == pytest.approx(8.0)


def test_soft_lookup_of_ours_worked_by_hand(build, precision):
    """Identity projections, d_k = 4: the key (2 log .6) against the query (1) has score log .6."""
    attention, _ = build("attention", "single_head", d_model=4, dropout=0.0, site=ENCODER)
    for parameter in attention.parameters():
        parameter.set_value(precision.tensor(np.eye(4)))
    attention.value.weight.set_value(
        precision.tensor(np.roll(np.eye(4), -1, axis=1))
    )  # channel 0 takes channel 1's value
    source = np.zeros((1, 3, 4))
    source[0, :, 0] = 2 * np.log([0.6, 0.4, 1e-40])
    source[0, :, 1] = 10, 5, 2
    x = np.zeros((1, 3, 4))
    x[0, :, 0] = 1
    valid = np.ones((1, 3), dtype=bool)
    precision.same(attend(attention, precision, ENCODER, x, valid, source, valid)[0, :, 0], np.full(3, 8.0))


def test_the_linear_sum_is_the_papers_recurrence(rng):
    q, k, v = rng.normal(size=(3, 7, 4))
    valid = np.array([True, True, False, True, True, True, False])
    allowed = paper.visible(valid[None], 7, causal=True)[0]
    np.testing.assert_allclose(
        paper.linear_attention_sum(q, k, v, allowed), paper.linear_attention_recurrent(q, k, v, valid), rtol=1e-12
    )
