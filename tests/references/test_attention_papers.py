"""What an attention does beyond its formula by itself: norms inside it, encodings beside it, and numbers of the
papers."""

import functools

import attention_numpy as twins
import numpy as np
import paper_equations as paper
import pytest
from paper_cases import CROSS, D_MODEL, ENCODER, HEADS, MAX_LENGTH, SITES, attend, sentences

from paddle_tfm.errors import RecipeError
from paddle_tfm.protocols import LayerSite

EVEN = 4  # heads, where there must be pairs or groups of them
WINDOW = 2


REFERENCES = {
    "multihead": functools.partial(paper.multi_head_attention, heads=HEADS),
    "full_width_heads": functools.partial(paper.multi_head_attention, heads=HEADS),
    "linear": functools.partial(paper.multi_head_linear_attention, heads=HEADS),
    "lora": functools.partial(twins.lora, heads=HEADS),
    "single_head": paper.single_head_attention,
    "grouped_query": functools.partial(twins.grouped_query, heads=HEADS, kv_heads=1),
    "local": functools.partial(twins.local, heads=HEADS, window=WINDOW),
    "talking_heads": functools.partial(twins.talking_heads, heads=HEADS),
    "cosine": functools.partial(twins.cosine, heads=HEADS),
    "qk_norm": functools.partial(twins.qk_norm, heads=HEADS),
    "sinks": functools.partial(twins.sinks, heads=HEADS),
    "sigmoid": functools.partial(twins.sigmoid, heads=HEADS),
    "exclusive": functools.partial(twins.exclusive, heads=HEADS),
    "value_residual": functools.partial(twins.value_residual, heads=HEADS),
    "canon": functools.partial(twins.canon, heads=HEADS),
    "scalable_softmax": functools.partial(twins.scalable_softmax, heads=HEADS),
    "interleaved": functools.partial(twins.local, heads=HEADS, window=WINDOW),  # the lowest layer
    "gated": functools.partial(twins.gated, heads=HEADS),
    "differential": functools.partial(twins.differential, heads=EVEN, site=ENCODER),
}
OPTIONS = {"local": {"window": WINDOW}, "interleaved": {"window": WINDOW}, "differential": {"num_heads": EVEN}}
ONE_TEXT = (
    "local",
    "interleaved",
    "exclusive",
    "value_residual",
    "canon",
)  # what none of them finds in cross-attention
PLACES = [(name, site) for name in REFERENCES for site in SITES if name not in ONE_TEXT or site != CROSS]
GIVEN = {"d_model": D_MODEL, "num_heads": HEADS, "dropout": 0.0, "max_length": MAX_LENGTH}


def compare(attention, precision, site, rng, reference, w, encoding=None):
    x, x_valid, source, source_valid = sentences(rng, site)
    ours = attend(attention, precision, site, x, x_valid, source, source_valid, encoding)
    expected = reference(x, source, w, allowed=paper.visible(source_valid, x.shape[1], site.causal))
    precision.same(ours[precision.tensor(x_valid)], expected[x_valid])


@pytest.mark.parametrize("name", [name for name in REFERENCES if name != "single_head"])
def test_sub_ln_normalizes_the_joined_heads_before_the_output_matrix(build, registry, precision, rng, name):
    attention, w = build(
        "attention",
        {"name": name, **OPTIONS.get(name, {})},
        **GIVEN,
        site=ENCODER,
        inner_norm=lambda width: registry.build("norm", "layer", d_model=width),
    )
    weight, bias = w.pop("inner_norm.weight"), w.pop("inner_norm.bias")
    assert weight.shape == w["output.weight"].shape[:1]

    def inner(y):
        return paper.layer_norm(y, weight, bias)

    compare(attention, precision, ENCODER, rng, functools.partial(REFERENCES[name], inner=inner), w)


@pytest.mark.parametrize("site", SITES, ids=str)
@pytest.mark.parametrize("spec", ["multihead", {"name": "multihead", "head_dim": 6}, "grouped_query"], ids=str)
def test_hybrid_norm_normalizes_queries_keys_and_values_of_each_head(build, registry, precision, rng, spec, site):
    """2503.04598, equation 6: Attention(Norm(Q), Norm(K), Norm(V)), as in BryceZhuo/HybridNorm over the channels of a
    head, with weights that the heads share."""
    attention, w = build(
        "attention",
        spec,
        **GIVEN,
        site=site,
        projection_norm=lambda width: registry.build("norm", "layer", d_model=width),
    )

    def look(_, q, k, v, allowed):
        normed = (
            paper.layer_norm(rows, w[f"{name}.norm.weight"], w[f"{name}.norm.bias"])
            for name, rows in (("query", q), ("key", k), ("value", v))
        )
        return paper.scaled_dot_product_attention(*normed, allowed)

    reference = REFERENCES[spec if isinstance(spec, str) else spec["name"]]
    compare(attention, precision, site, rng, functools.partial(reference, look=look), w)


@pytest.mark.parametrize("name", REFERENCES)
def test_what_takes_norms_of_queries_keys_and_values_uses_all_three(build, registry, precision, rng, name):
    """Layer norm forgets the size of what it gets: with W_q, W_k and W_v seven times as large, nothing changes."""
    spec = {"name": name, **OPTIONS.get(name, {})}
    if "projection_norm" not in registry.resolve("attention", spec, "attention").parameters:
        return  # `hybrid_norm` refuses it
    attention, _ = build(
        "attention", spec, **GIVEN, site=ENCODER,
        projection_norm=lambda width: registry.build("norm", {"name": "layer", "eps": 1e-12}, d_model=width),
    )  # fmt: skip
    x, x_valid, source, source_valid = sentences(rng, ENCODER)
    before = attend(attention, precision, ENCODER, x, x_valid, source, source_valid)
    for projection in (attention.query, attention.key, attention.value):
        for parameter in filter(lambda it: it is not None, (projection.weight, projection.bias)):
            parameter.set_value(parameter * 7.0)
    after = attend(attention, precision, ENCODER, x, x_valid, source, source_valid).numpy()
    np.testing.assert_allclose(after[x_valid], before.numpy()[x_valid], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["batch", "batch_per_position", "power", "regularized_batch"])
def test_a_norm_with_running_statistics_is_refused_for_queries_keys_and_values(registry, name):
    def norm(width):
        return registry.build("norm", name, d_model=width, max_length=MAX_LENGTH)

    with pytest.raises(RecipeError, match="running statistics"):
        registry.build("attention", "multihead", **GIVEN, site=ENCODER, projection_norm=norm)


# ---------------------------------------------------------------------------------------- options, layers, encodings


@pytest.mark.parametrize("site", SITES, ids=str)
def test_queries_and_keys_are_rotated_after_their_norm(build, precision, rng, site):
    attention, w = build("attention", {"name": "qk_norm", "num_heads": 3}, **GIVEN, site=site)
    encoding, _ = build("position", "rotary", head_dim=4)

    def look(_, q, k, v, allowed):
        q, k = paper.rms_norm(q, w["query_norm.weight"]), paper.rms_norm(k, w["key_norm.weight"])
        return paper.rotary_attention(q, k, v, np.arange(len(q)), np.arange(len(k)), allowed)

    reference = functools.partial(paper.multi_head_attention, heads=3, look=look)
    compare(attention, precision, site, rng, reference, w, encoding)


@pytest.mark.parametrize("layer", [0, 1, 5])
def test_what_is_subtracted_at_first_grows_with_the_layer(build, precision, rng, layer):
    site = LayerSite("decoder", "self", layer, 2, 8)
    attention, w = build("attention", {"name": "differential", "num_heads": EVEN}, **GIVEN, site=site)
    compare(attention, precision, site, rng, functools.partial(twins.differential, heads=EVEN, site=site), w)


def rotary(h, q, k, v, allowed, w):
    return paper.rotary_attention(q, k, v, np.arange(len(q)), np.arange(len(k)), allowed)


def alibi(h, q, k, v, allowed, w):
    bias = paper.alibi_bias(paper.alibi_slopes(6), np.arange(len(q)), np.arange(len(k)))
    return paper.scaled_dot_product_attention(q, k, v, allowed, bias[h])


def shaw(h, q, k, v, allowed, w):
    tables = w["key_table"], w["value_table"]
    return paper.shaw_attention(q, k, v, np.arange(len(q)), np.arange(len(k)), *tables, 2, allowed)


SPECS = {rotary: "rotary", alibi: "alibi", shaw: {"name": "shaw", "clip": 2}}


@pytest.mark.parametrize("position", SPECS, ids=lambda position: position.__name__)
@pytest.mark.parametrize("name, site", [place for place in PLACES if place[0] in ("grouped_query", "local")], ids=str)
def test_positions_where_heads_share_keys_or_see_a_window(build, precision, rng, name, position, site):
    """Rotated keys are those of the groups; Shaw's vectors and ALiBi's slopes belong to the heads of the queries."""
    reference, options = {
        "grouped_query": (twins.grouped_query, {"kv_heads": 2}),
        "local": (twins.local, {"window": 2}),
    }[name]
    attention, w = build("attention", {"name": name, "num_heads": 6, **options}, **GIVEN, site=site)
    encoding, tables = build("position", SPECS[position], num_heads=6, head_dim=D_MODEL // 6, site=site)
    look = functools.partial(position, w=tables)
    compare(attention, precision, site, rng, functools.partial(reference, heads=6, look=look, **options), w, encoding)


@pytest.mark.parametrize("site", SITES, ids=str)
def test_the_two_softmaxes_of_a_difference_are_rotated_alike(build, precision, rng, site):
    """2410.05258, as the authors' code has it: each query and each key is rotated by itself."""
    attention, w = build("attention", {"name": "differential", "num_heads": 6}, **GIVEN, site=site)
    encoding, _ = build("position", "rotary", head_dim=2)

    def look(q, k, allowed):
        return paper.rotary_attention(q, k, np.eye(len(k)), np.arange(len(q)), np.arange(len(k)), allowed)

    compare(
        attention,
        precision,
        site,
        rng,
        functools.partial(twins.differential, heads=6, site=site, look=look),
        w,
        encoding,
    )
