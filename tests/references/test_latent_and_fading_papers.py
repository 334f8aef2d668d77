"""Attentions that keep something else than keys and values, against their papers' equations: a latent, forget gates, a
memory that is corrected."""

import functools
import math

import numpy as np
import paper_equations as paper
import pytest
from paper_cases import CROSS, D_MODEL, DECODER, ENCODER, HEADS, MAX_LENGTH, SITES, VALID, attend, sentences

# ------------------------------------------------------------------------------------------------------- equations


def columns(x, head, width):
    return x[..., head * width : (head + 1) * width]


def join(heads, w, inner):
    together = np.concatenate(heads, -1)
    return (together if inner is None else inner(together)) @ w["output.weight"]


def multi_head_latent_attention(x, source, w, allowed, *, heads=HEADS, base=None, inner=None):
    """2405.04434, equations 9 to 19 and 37 to 47: c_j = W^DKV h_j, k_j,h = [W_h^UK c_j; RoPE(W^KR h_j)], v_j,h = W_h^UV
    c_j, q_i,h = [W_h^Q x_i; RoPE(W_h^QR x_i)], softmax_j(q · k / sqrt(d_h + d_h^R)); x_i the latent W^DQ h_i where
    queries have one. RMS norms of the latents: section 3.1.2, and modeling_deepseek.py. base None: no rotation."""
    d, r = (w[f"{name}.weight"].shape[1] // heads for name in ("query", "rotated_query"))

    def turn(row, position):
        return row if base is None else paper.rotary(row, position, base)

    out = []
    for b in range(len(x)):
        asked = x[b]
        if "query_latent.weight" in w:
            asked = paper.rms_norm(asked @ w["query_latent.weight"], w["query_norm.weight"])
        c = paper.rms_norm(source[b] @ w["latent.weight"], w["latent_norm.weight"])
        shared = np.stack([turn(row, j) for j, row in enumerate(source[b] @ w["rotated_key.weight"])])
        per_head = []
        for h in range(heads):
            own = columns(asked @ w["rotated_query.weight"], h, r)
            q = [
                np.concatenate([row, turn(own[i], i)]) for i, row in enumerate(columns(asked @ w["query.weight"], h, d))
            ]
            k = np.concatenate([columns(c @ w["key.weight"], h, d), shared], -1)
            weights = paper.softmax(np.stack(q) @ k.T / math.sqrt(d + r), allowed[b])
            per_head.append(weights @ columns(c @ w["value.weight"], h, d))
        out.append(join(per_head, w, inner))
    return np.stack(out)


def forgetting_attention(x, valid, w, *, heads=HEADS, base=None, inner=None):
    """2503.02130, equations 6 and 7: o_i = Σ_j F_ij exp(q_i·k_j / √d) v_j / Σ_j F_ij exp(q_i·k_j / √d), F_ij = Π_{l =
    j+1 … i} f_l, f_t = σ(w_f x_t + b_f), j ≤ i. Ours: of a text with padding, the real tokens alone."""
    out = np.zeros_like(x)
    for b in range(len(x)):
        text, here, per_head = x[b][valid[b]], np.flatnonzero(valid[b]), []
        gates = paper.sigmoid(paper.affine(text, w["forget.weight"], w["forget.bias"]))
        q, k, v = (paper.affine(text, w[f"{n}.weight"], w.get(f"{n}.bias")) for n in ("query", "key", "value"))
        d = q.shape[1] // heads
        for h in range(heads):
            rows = []
            for i in range(len(text)):
                weights = []
                for j in range(i + 1):
                    a, c = columns(q[i], h, d), columns(k[j], h, d)
                    if base is not None:
                        a, c = paper.rotary(a, here[i], base), paper.rotary(c, here[j], base)
                    weights.append(np.prod(gates[j + 1 : i + 1, h]) * np.exp(a @ c / math.sqrt(d)))
                rows.append(np.array(weights) @ columns(v[: i + 1], h, d) / sum(weights))
            per_head.append(np.stack(rows))
        together = np.concatenate(per_head, -1)
        together = together if inner is None else inner(together)
        out[b][valid[b]] = paper.affine(together, w["output.weight"], w.get("output.bias"))
    return out


def gated_delta_net(x, valid, w, *, heads=HEADS, inner=None):
    """2412.06464, equation 10: S_t = S_{t−1} (α_t (I − β_t k_t k_tᵀ)) + β_t v_t k_tᵀ, o_t = S_t q_t, token by token;
    around it figure 1 and the authors' layer: short convolutions, SiLU, L2 norms, α = exp(−A softplus(x W + dt)), β =
    σ(x W), scale 1 / √d_k, a gated RMS norm. Of a text with padding, the real tokens alone."""

    def silu(t):
        return t * paper.sigmoid(t)

    out = np.zeros_like(x)
    for b in range(len(x)):
        text = x[b][valid[b]]
        projected = np.concatenate([text @ w[f"{name}.weight"] for name in ("query", "key", "value")], -1)
        width = len(w["kernel"])
        padded = np.concatenate([np.zeros((width - 1, projected.shape[1])), projected])
        convolved = silu(np.stack([(padded[t : t + width] * w["kernel"]).sum(0) for t in range(len(text))]))
        d, e = w["query.weight"].shape[1] // heads, w["value.weight"].shape[1] // heads
        q, k, v = np.split(convolved, [heads * d, 2 * heads * d], -1)
        alpha = np.exp(-np.exp(w["log_rate"]) * np.log1p(np.exp(text @ w["fade.weight"] + w["fade_bias"])))
        beta = paper.sigmoid(text @ w["write.weight"])
        gate, per_head = silu(text @ w["gate.weight"]), []
        for h in range(heads):
            state, rows = np.zeros((e, d)), []
            for t in range(len(text)):
                a, c = (columns(y[t], h, d) for y in (q, k))
                a, c = (y / np.sqrt(y @ y + 1e-6) for y in (a, c))
                state = state @ (alpha[t, h] * (np.eye(d) - beta[t, h] * np.outer(c, c)))
                state = state + beta[t, h] * np.outer(columns(v[t], h, e), c)
                rows.append(state @ a / math.sqrt(d))
            per_head.append(paper.rms_norm(np.stack(rows), w["norm.weight"], eps=1e-5) * columns(gate, h, e))
        out[b][valid[b]] = join(per_head, w, inner)
    return out


REFERENCES = {
    "mla": multi_head_latent_attention,
    "forgetting": forgetting_attention,
    "gated_deltanet": gated_delta_net,
}

# ----------------------------------------------------------------------------------------------------------- tests

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
    compare(attention, precision, site, rng, functools.partial(multi_head_latent_attention, base=base), w, encoding)


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
    precision.same(ours[precision.tensor(VALID)], forgetting_attention(x, VALID, w, base=10000.0)[VALID])


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
