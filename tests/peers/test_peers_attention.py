"""Attentions with the weights of PyTorch's, x-transformers' and Transformers' own."""

import numpy as np
import pytest
from peer_cases import (
    CROSS,
    D_MODEL,
    DECODER,
    ENCODER,
    ENDED,
    GIVEN,
    HEAD_DIM,
    HEADS,
    LENGTH,
    additive,
    attend,
    copy,
    halves,
    linear,
    sentences,
    single,
    transposed,
)

from paddle_tfm.protocols import LayerSite

pytestmark = pytest.mark.peers
torch = pytest.importorskip("torch")
SITES = pytest.mark.parametrize("site", [ENCODER, DECODER, CROSS], ids=str)
SELF = pytest.mark.parametrize("site", [ENCODER, DECODER], ids=str)


def future(length):
    return torch.ones(length, length, dtype=torch.bool).triu(1)


# -------------------------------------------------------------------------------------------------------------- PyTorch


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no-bias"])
@pytest.mark.parametrize("spec", [{"name": "multihead"}, {"name": "sinks", "learned": False}], ids=str)
@SITES
def test_multihead_and_softmax_off_by_one_are_those_of_pytorch(build, precision, agree, rng, site, spec, bias):
    """`add_zero_attn` adds a key and a value of zeros: a score of 0 for nothing."""
    ours, w = build("attention", {**spec, "bias": bias}, **GIVEN, site=site)
    theirs = torch.nn.MultiheadAttention(
        D_MODEL, HEADS, bias=bias, add_zero_attn=spec["name"] == "sinks", batch_first=True
    )
    together = {"weight": lambda name: w[f"{name}.weight"].T, "bias": lambda name: w[f"{name}.bias"]}
    arrays = {
        f"in_proj_{part}": np.concatenate([weight_of(name) for name in ("query", "key", "value")])
        for part, weight_of in together.items()
        if part == "weight" or bias
    }
    copy(theirs, arrays | transposed(w, {"out_proj": "output"}))
    x, valid, source, source_valid = sentences(rng, site)
    expected, _ = theirs(
        precision.theirs(x),
        precision.theirs(source),
        precision.theirs(source),
        key_padding_mask=torch.from_numpy(~source_valid),  # True hides
        attn_mask=future(LENGTH) if site.causal else None,
    )
    agree(attend(ours, precision, site, x, valid, source, source_valid), expected[valid])


@SELF
def test_recurrent_is_pytorchs_lstm(build, precision, agree, rng, site):
    """torch.nn.LSTM has a bias beside each of its two matrices, ours one: the second is 0. Gates stand in the same
    order. Padding is at the end alone, where packing allows it."""
    ours, w = build("attention", "recurrent", d_model=D_MODEL, site=site)
    width = D_MODEL if site.causal else D_MODEL // 2
    theirs = torch.nn.LSTM(D_MODEL, width, batch_first=True, bidirectional=not site.causal)
    arrays = {}
    for name, end in [("ahead", ""), ("back", "_reverse")][: 1 if site.causal else 2]:
        arrays[f"weight_ih_l0{end}"] = w[f"{name}.input"].reshape(4 * width, D_MODEL)
        arrays[f"weight_hh_l0{end}"] = w[f"{name}.hidden"].reshape(4 * width, width)
        arrays[f"bias_ih_l0{end}"] = w[f"{name}.bias"]
        arrays[f"bias_hh_l0{end}"] = np.zeros_like(w[f"{name}.bias"])
    copy(theirs, arrays)
    x, valid, source, source_valid = sentences(rng, site, ENDED)
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        precision.theirs(x), torch.from_numpy(valid.sum(1)), batch_first=True, enforce_sorted=False
    )
    read, _ = torch.nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True, total_length=LENGTH)
    agree(attend(ours, precision, site, x, valid, source, source_valid), linear(w, "output")(read)[valid])


# ------------------------------------------------------------------------------------------------------- x-transformers


def x_transformers_attention(precision, site, x, valid, source, source_valid, arrays, dim_head=HEAD_DIM, **options):
    """x_transformers.Attention with these weights, at the real queries."""
    theirs = pytest.importorskip("x_transformers").Attention(
        D_MODEL, dim_head=dim_head, heads=HEADS, causal=site.causal, **options
    )
    copy(theirs, arrays)
    across = {}
    if site.sublayer == "cross":
        across = {"context": precision.theirs(source), "context_mask": torch.from_numpy(source_valid)}
    return theirs(precision.theirs(x), mask=torch.from_numpy(valid), **across)[valid]


FOUR = {"to_q": "query", "to_k": "key", "to_v": "value", "to_out": "output"}


@single
@pytest.mark.parametrize(
    "spec, dim_head", [({"name": "full_width_heads"}, D_MODEL), ({"name": "multihead", "head_dim": 6}, 6)], ids=str
)
@SITES
def test_heads_of_another_width_are_those_of_x_transformers(build, precision, agree, rng, site, spec, dim_head):
    ours, w = build("attention", {**spec, "bias": False}, **GIVEN, site=site)
    texts = sentences(rng, site)
    theirs = x_transformers_attention(precision, site, *texts, transposed(w, FOUR), dim_head)
    agree(attend(ours, precision, site, *texts), theirs)


@single
@SITES
def test_gated_is_that_of_x_transformers(build, precision, agree, rng, site):
    ours, w = build("attention", {"name": "gated", "bias": False}, **GIVEN, site=site)
    texts = sentences(rng, site)
    arrays = transposed(w, FOUR | {"to_v_gate": "gate"})
    agree(
        attend(ours, precision, site, *texts),
        x_transformers_attention(precision, site, *texts, arrays, gate_values=True),
    )


@single
@SITES
def test_talking_heads_are_those_of_x_transformers(build, precision, agree, rng, site):
    """x-transformers adds what it mixes before the softmax to the scores, so that its matrix there is ours less the
    identity; after the softmax both replace. Its 1 × 1 convolutions are [out, in], ours [in, out]."""
    ours, w = build("attention", {"name": "talking_heads", "bias": False}, **GIVEN, site=site)
    texts = sentences(rng, site)
    arrays = transposed(w, FOUR) | {
        "attend.pre_softmax_talking_heads.weight": (w["mix_scores"] - np.eye(HEADS)).T[:, :, None, None],
        "attend.post_softmax_talking_heads.weight": w["mix_weights"].T[:, :, None, None],
    }
    options = {"pre_talking_heads": True, "post_talking_heads": True}
    agree(attend(ours, precision, site, *texts), x_transformers_attention(precision, site, *texts, arrays, **options))


@single
@SITES
def test_cosine_is_that_of_x_transformers(build, precision, agree, rng, site):
    """Its scale is a number that is not trained; ours is set to the same."""
    ours, w = build("attention", {"name": "cosine", "bias": False}, **GIVEN, site=site)
    ours.gain.set_value(precision.ours(np.array([3.7])))
    texts = sentences(rng, site)
    options = {"qk_norm": True, "qk_norm_scale": 3.7}
    agree(
        attend(ours, precision, site, *texts),
        x_transformers_attention(precision, site, *texts, transposed(w, FOUR), **options),
    )


# --------------------------------------------------------------------------------------------------------- Transformers


@pytest.mark.parametrize("layer", [0, 2])
@pytest.mark.parametrize("position", ["none", "rotary"])
@SELF
@single
def test_differential_is_that_of_diffllama(build, registry, precision, agree, rng, site, position, layer):
    """DiffLlama's pairs of heads are h and h + H / 2, ours 2h and 2h + 1; its norm of heads has no weight (ours: 1);
    its rotary channels stand in halves."""
    diffllama = pytest.importorskip("transformers.models.diffllama.modeling_diffllama")
    site = LayerSite(site.stack, "self", layer, 3, 3)
    ours, w = build("attention", {"name": "differential", "bias": False}, **GIVEN, site=site)
    ours.head_norm.weight.set_value(precision.ours(np.ones(2 * HEAD_DIM)))
    config = diffllama.DiffLlamaConfig(
        hidden_size=D_MODEL, num_attention_heads=HEADS, num_key_value_heads=HEADS, rms_norm_eps=1e-5,
        attn_implementation="eager",
    )  # fmt: skip
    theirs = diffllama.DiffLlamaAttention(config, layer)

    def heads_apart(matrix, turned=False):
        """[C, H · D], ours → theirs."""
        apart = matrix.reshape(D_MODEL, HEADS // 2, 2, HEAD_DIM).swapaxes(1, 2).reshape(D_MODEL, -1)
        return (halves(apart, HEADS) if turned else apart).T

    turned = position == "rotary"
    arrays = {name: w[name] for name in ("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2")}
    arrays |= {
        "q_proj.weight": heads_apart(w["query.weight"], turned),
        "k_proj.weight": heads_apart(w["key.weight"], turned),
        "v_proj.weight": heads_apart(w["value.weight"]),
        "o_proj.weight": w["output.weight"].T,
    }
    copy(theirs, arrays)
    x, valid, source, source_valid = sentences(rng, site)
    encoding = registry.build("position", position, head_dim=HEAD_DIM) if turned else None
    angles = diffllama.DiffLlamaRotaryEmbedding(config)(precision.theirs(x), torch.arange(LENGTH)[None])
    if not turned:
        angles = torch.ones_like(angles[0]), torch.zeros_like(angles[1])
    expected, _ = theirs(precision.theirs(x), angles, additive(precision, valid, LENGTH, site.causal))
    agree(attend(ours, precision, site, x, valid, source, source_valid, encoding), expected[valid])


@SITES
def test_sinks_are_those_of_gpt_oss(build, precision, agree, rng, site):
    """The lookup alone; the projections are torch.nn.Linear."""
    gpt_oss = pytest.importorskip("transformers.models.gpt_oss.modeling_gpt_oss")
    ours, w = build("attention", "sinks", **GIVEN, site=site)
    x, valid, source, source_valid = sentences(rng, site)

    def heads(name, inputs):
        return linear(w, name)(precision.theirs(inputs)).unflatten(-1, (HEADS, HEAD_DIM)).transpose(1, 2)

    layer = torch.nn.Module().eval()
    layer.num_key_value_groups, layer.sinks = 1, precision.theirs(w["sink"])
    mask = additive(precision, source_valid, LENGTH, site.causal)
    context, _ = gpt_oss.eager_attention_forward(
        layer, heads("query", x), heads("key", source), heads("value", source), mask, HEAD_DIM**-0.5
    )
    expected = linear(w, "output")(context.flatten(2))
    agree(attend(ours, precision, site, x, valid, source, source_valid), expected[valid])
