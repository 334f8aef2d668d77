"""What an attention does beyond its formula by itself: norms inside it, encodings beside it, and the layer it stands in."""

import functools

import attention_numpy as twins
import numpy as np
import paper_equations as paper
import pytest
from paper_cases import CROSS, D_MODEL, DECODER, ENCODER, HEADS, MAX_LENGTH, SITES, attend, sentences

from paddle_tfm.errors import RecipeError
from paddle_tfm.protocols import LayerSite

INSIDE = {  # those that reach the output matrix each in its own way
    "multihead": paper.multi_head_attention,
    "linear": paper.multi_head_linear_attention,
    "gated": twins.gated,
    "mla": twins.mla,
}
GIVEN = {"d_model": D_MODEL, "num_heads": HEADS, "dropout": 0.0, "max_length": MAX_LENGTH}


def compare(attention, precision, site, rng, reference, w, encoding=None):
    x, x_valid, source, source_valid = sentences(rng, site)
    ours = attend(attention, precision, site, x, x_valid, source, source_valid, encoding)
    expected = reference(x, source, w, allowed=paper.visible(source_valid, x.shape[1], site.causal))
    precision.same(ours[precision.tensor(x_valid)], expected[x_valid])


@pytest.mark.parametrize("name", INSIDE)
def test_sub_ln_normalizes_the_joined_heads_before_the_output_matrix(build, registry, precision, rng, name):
    attention, w = build(
        "attention",
        name,
        **GIVEN,
        site=DECODER,
        inner_norm=lambda width: registry.build("norm", "layer", d_model=width),
    )
    weight, bias = w.pop("inner_norm.weight"), w.pop("inner_norm.bias")
    assert weight.shape == w["output.weight"].shape[:1]
    inner = functools.partial(paper.layer_norm, weight=weight, bias=bias)
    compare(attention, precision, DECODER, rng, functools.partial(INSIDE[name], heads=HEADS, inner=inner), w)


@pytest.mark.parametrize("spec", ["multihead", {"name": "multihead", "head_dim": 6}, "grouped_query"], ids=str)
def test_hybrid_norm_normalizes_queries_keys_and_values_of_each_head(build, registry, precision, rng, spec):
    """2503.04598, equation 6: Attention(Norm(Q), Norm(K), Norm(V)), as in BryceZhuo/HybridNorm over the channels of a
    head, with weights that the heads share."""
    attention, w = build(
        "attention",
        spec,
        **GIVEN,
        site=CROSS,
        projection_norm=lambda width: registry.build("norm", "layer", d_model=width),
    )

    def look(_, q, k, v, allowed):
        normed = (
            paper.layer_norm(rows, w[f"{name}.norm.weight"], w[f"{name}.norm.bias"])
            for name, rows in (("query", q), ("key", k), ("value", v))
        )
        return paper.scaled_dot_product_attention(*normed, allowed)

    grouped = functools.partial(twins.grouped_query, kv_heads=1)
    reference = grouped if spec == "grouped_query" else paper.multi_head_attention
    compare(attention, precision, CROSS, rng, functools.partial(reference, heads=HEADS, look=look), w)


def test_a_norm_with_running_statistics_is_refused_for_queries_keys_and_values(registry):
    def norm(width):
        return registry.build("norm", "batch", d_model=width)

    with pytest.raises(RecipeError, match="running statistics"):
        registry.build("attention", "multihead", **GIVEN, site=ENCODER, projection_norm=norm)


def test_queries_and_keys_are_rotated_after_their_norm(build, precision, rng):
    attention, w = build("attention", "qk_norm", **GIVEN, site=DECODER)
    encoding, _ = build("position", "rotary", head_dim=4)

    def look(_, q, k, v, allowed):
        q, k = paper.rms_norm(q, w["query_norm.weight"]), paper.rms_norm(k, w["key_norm.weight"])
        return paper.rotary_attention(q, k, v, np.arange(len(q)), np.arange(len(k)), allowed)

    reference = functools.partial(paper.multi_head_attention, heads=HEADS, look=look)
    compare(attention, precision, DECODER, rng, reference, w, encoding)


@pytest.mark.parametrize("layer", [1, 5])
def test_what_is_subtracted_at_first_grows_with_the_layer(build, precision, rng, layer):
    site = LayerSite("decoder", "self", layer, 2, 8)
    attention, w = build("attention", {"name": "differential", "num_heads": 4}, **GIVEN, site=site)
    compare(attention, precision, site, rng, functools.partial(twins.differential, heads=4, site=site), w)


def rotary(h, q, k, v, allowed, w):
    return paper.rotary_attention(q, k, v, np.arange(len(q)), np.arange(len(k)), allowed)


def alibi(h, q, k, v, allowed, w):
    bias = paper.alibi_bias(paper.alibi_slopes(6), np.arange(len(q)), np.arange(len(k)))
    return paper.scaled_dot_product_attention(q, k, v, allowed, bias[h])


def shaw(h, q, k, v, allowed, w):
    tables = w["key_table"], w["value_table"]
    return paper.shaw_attention(q, k, v, np.arange(len(q)), np.arange(len(k)), *tables, 2, allowed)


@pytest.mark.parametrize(
    "spec, position",
    [("rotary", rotary), ("alibi", alibi), ({"name": "shaw", "clip": 2}, shaw)],
    ids=["rotary", "alibi", "shaw"],
)
@pytest.mark.parametrize("site", SITES, ids=str)
def test_positions_where_heads_share_keys(build, precision, rng, spec, position, site):
    """Rotated keys are those of the groups; Shaw's vectors and ALiBi's slopes belong to the heads of the queries."""
    attention, w = build("attention", {"name": "grouped_query", "num_heads": 6, "kv_heads": 2}, **GIVEN, site=site)
    encoding, tables = build("position", spec, num_heads=6, head_dim=D_MODEL // 6, site=site)
    look = functools.partial(position, w=tables)
    compare(
        attention,
        precision,
        site,
        rng,
        functools.partial(twins.grouped_query, heads=6, kv_heads=2, look=look),
        w,
        encoding,
    )
