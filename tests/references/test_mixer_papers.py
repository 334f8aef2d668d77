"""What stands in the place of dot-product attention against its paper's equations: synthesized weights, a recurrent
network, a convolution. All of them look at one text, so that there is no cross-attention."""

import numpy as np
import paper_equations as paper
import pytest
from paper_cases import D_MODEL, DECODER, ENCODER, HEADS, MAX_LENGTH, VALID, attend

# ------------------------------------------------------------------------------------------------------- equations


def synthesizer(x, valid, w, *, causal, heads=HEADS, longest=MAX_LENGTH, inner=None):
    """Y = softmax(B) G(X), B_i = W_2 max(0, W_1 x_i + b_1) + b_2 (Dense Synthesizer) or B = R, or R_1 R_2ᵀ (Random and
    Factorized Random Synthesizer): 2005.00743; for each head, of which 1706.03762, section 3.2.2, makes one.

    B_i has an entry for each position below `longest`. Ours: later positions take the last entry (the paper has none).
    """
    allowed = paper.visible(valid, x.shape[1], causal)
    last = [min(j, longest - 1) for j in range(x.shape[1])]
    out = []
    for b in range(len(x)):
        value, per_head = paper.affine(x[b], w["value.weight"], w.get("value.bias")), []
        dim = value.shape[1] // heads
        if "rows" not in w:
            hidden = np.maximum(0, paper.affine(x[b], w["hidden.weight"], w.get("hidden.bias")))
        for h in range(heads):
            if "rows" not in w:
                units = w["columns"].shape[2]
                scores = hidden[:, h * units : (h + 1) * units] @ w["columns"][h].T
                scores = scores + w["column_bias"][h, :, 0] if "column_bias" in w else scores
            else:
                table = w["rows"][h] @ w["columns"][h].T if "columns" in w else w["rows"][h]
                scores = table[last]
            weights = paper.softmax(scores[:, last], allowed[b])
            per_head.append(weights @ value[:, h * dim : (h + 1) * dim])
        together = np.concatenate(per_head, -1)
        together = together if inner is None else inner(together)
        out.append(paper.affine(together, w["output.weight"], w.get("output.bias")))
    return np.stack(out)


def lstm(x, w):
    """h_1 … h_T of one text x [T, C]: i, f, o = σ(W x_t + U h_{t−1} + b), g = tanh(W x_t + U h_{t−1} + b),
    c_t = f c_{t−1} + i g, h_t = o tanh(c_t). Hochreiter and Schmidhuber 1997 with the forget gate of Gers 2000."""
    (w_i, w_f, w_g, w_o), (u_i, u_f, u_g, u_o) = w["input"], w["hidden"]
    b_i, b_f, b_g, b_o = np.split(w["bias"], 4)
    h, c, out = np.zeros(len(b_i)), np.zeros(len(b_i)), []
    for row in x:
        i = paper.sigmoid(w_i @ row + u_i @ h + b_i)
        f = paper.sigmoid(w_f @ row + u_f @ h + b_f)
        g = np.tanh(w_g @ row + u_g @ h + b_g)
        o = paper.sigmoid(w_o @ row + u_o @ h + b_o)
        c = f * c + i * g
        h = o * np.tanh(c)
        out.append(h)
    return np.array(out)


def recurrent(x, valid, w, *, causal, inner=None):
    """An LSTM over the real tokens of each text; where both sides are seen a second one from the end, and both side by
    side (cf. 1804.09849). Ours: at padding, where the paper has nothing, the output is that of h = 0."""
    ahead, back = (
        {name.removeprefix(f"{way}."): value for name, value in w.items() if name.startswith(f"{way}.")}
        for way in ("ahead", "back")
    )
    out = []
    for text, real in zip(x, valid):
        states = lstm(text[real], ahead)
        if not causal:
            states = np.concatenate([states, lstm(text[real][::-1], back)[::-1]], -1)
        together = np.zeros((len(text), states.shape[1]))
        together[real] = states
        together = together if inner is None else inner(together)
        out.append(paper.affine(together, w["output.weight"], w["output.bias"]))
    return np.stack(out)


def convolution(x, valid, w, *, causal, heads=HEADS, inner=None):
    """LightConv(X, W_h, i, c) = Σ_j softmax(W_h)_j X_{i + j − ⌈(k + 1) / 2⌉, c} for j = 1 … k, or W = f(X_i)
    (DynamicConv): 1901.10430, sections 3 and 4; between a gated linear unit and an output matrix (section 3, "Module").

    In a decoder the kernel ends at i; what is no token is zero.
    """
    out = []
    for text, real in zip(x, valid):
        gate = paper.sigmoid(paper.affine(text, w["gate.weight"], w.get("gate.bias")))
        u = paper.affine(text, w["value.weight"], w.get("value.bias")) * gate * real[:, None]
        width = w["weight"].shape[1] if "weight" in w else w["predict.weight"].shape[1] // heads
        together = np.zeros_like(u)
        for i in range(len(u)):
            kernels = w["weight"] if "weight" in w else (u[i] @ w["predict.weight"]).reshape(heads, width)
            kernels = paper.softmax(kernels)
            for c in range(u.shape[1]):
                for j in range(1, width + 1):
                    at = i + j - (width if causal else (width + 1) // 2)
                    if 0 <= at < len(u):
                        together[i, c] += kernels[c * heads // u.shape[1], j - 1] * u[at, c]
        together = together if inner is None else inner(together)
        out.append(paper.affine(together, w["output.weight"], w.get("output.bias")))
    return np.stack(out)


REFERENCES = {"synthesizer": synthesizer, "recurrent": recurrent, "convolution": convolution}

# ----------------------------------------------------------------------------------------------------------- tests

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
    compare(attention, precision, site, rng, "synthesizer", w, longest=4)


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
