"""Every attention of the zoo in NumPy, as its paper has it: `plugin check … --reference attention_numpy.py:local`.

x [B, T, C], source [B, S, C], allowed [B, T, S], w: name → parameter. Without a positional encoding, if there is no
`look`; of some, `inner` is Sub-LN's norm in front of the output matrix (2210.06423, section 2.1).
"""

import math

import numpy as np
import paper_equations as paper
from feed_forward_numpy import canon_layer
from paper_equations import multi_head_attention as full_width_heads
from paper_equations import multi_head_attention as multihead
from paper_equations import multi_head_linear_attention as linear

__all__ = ["full_width_heads", "linear", "multihead"]


def project(t, w, name):
    return paper.affine(t, w[f"{name}.weight"], w.get(f"{name}.bias"))


def columns(x, head, width):
    """The channels of one head."""
    return x[..., head * width : (head + 1) * width]


def join(heads, w, inner=None):
    together = np.concatenate(heads, -1)
    return project(together if inner is None else inner(together), w, "output")


def single_head(x, source, w, allowed):
    """One head without an output matrix: 1706.03762, equation 1, over projections."""
    return np.stack(
        [
            paper.scaled_dot_product_attention(
                project(x[b], w, "query"), project(source[b], w, "key"), project(source[b], w, "value"), allowed[b]
            )
            for b in range(len(x))
        ]
    )


def grouped_query(x, source, w, allowed, *, heads, kv_heads, look=None):
    """2305.13245, section 2.2: query heads are divided into G groups, each of which shares a single key head and value
    head; with one group 1911.02150, section 3 (multi-query). Groups are of neighbours, as figure 2 draws them."""
    look = (lambda h, *qkv: paper.scaled_dot_product_attention(*qkv)) if look is None else look
    out, width = [], w["query.weight"].shape[1] // heads
    for b in range(len(x)):
        q, k, v = project(x[b], w, "query"), project(source[b], w, "key"), project(source[b], w, "value")
        groups = [g for g in range(kv_heads) for _ in range(heads // kv_heads)]  # of each head
        per_head = [
            look(h, columns(q, h, width), columns(k, g, width), columns(v, g, width), allowed[b])
            for h, g in enumerate(groups)
        ]
        out.append(join(per_head, w))
    return np.stack(out)


def raw_keys(x, source, w, allowed, *, heads, eps=1e-6):
    """Marian's self-attention with --transformer-preprocess n, before its version 1.11: queries of LN(x), keys and
    values of x."""
    normed = paper.layer_norm(x, w["query_norm.weight"], w["query_norm.bias"], eps)
    return paper.multi_head_attention(normed, source, w, heads, allowed)


def local(x, source, w, allowed, *, heads, window):
    """2004.05150, section 3.1 (Sliding Window): given a fixed window size w, each token attends to w / 2 tokens on each
    side; here `window` is that half."""
    near = np.array([[abs(i - j) <= window for j in range(source.shape[1])] for i in range(x.shape[1])])
    with np.errstate(invalid="ignore"):  # padding beyond the window of every real key
        return paper.multi_head_attention(x, source, w, heads, allowed & near)


def interleaved(x, source, w, allowed, *, heads, window, every, site):
    """2408.00118, section 2: layers alternate between a window and all, the first a window's; 2503.19786, section 2: five
    of them for one that sees all."""
    if (site.layer + 1) % every == 0:
        return multihead(x, source, w, heads, allowed)
    return local(x, source, w, allowed, heads=heads, window=window)


def lora(x, source, w, allowed, *, heads, scale=1.0, **more):
    """2106.09685, equation 3: h = W₀ x + ΔW x = W₀ x + B A x, ΔW scaled by α / r; as one matrix."""
    merged = {
        f"{name}.weight": w[f"{name}.weight"] + scale * w[f"{name}.down"] @ w[f"{name}.up"]
        for name in ("query", "key", "value", "output")
        if f"{name}.up" in w
    }
    return multihead(x, source, {**w, **merged}, heads, allowed, **more)


def talking_heads(x, source, w, allowed, *, heads):
    """2003.02436: logits J = Q Kᵀ, L = J P_l over heads, weights W = softmax(L), U = W P_w over heads, O = U V.
    With the division by sqrt(d_k) and the mask of 1706.03762, section 3.2."""
    out, width = [], w["query.weight"].shape[1] // heads
    for b in range(len(x)):
        q, k, v = project(x[b], w, "query"), project(source[b], w, "key"), project(source[b], w, "value")
        logits = [columns(q, h, width) @ columns(k, h, width).T / math.sqrt(width) for h in range(heads)]
        mixed = [sum(w["mix_scores"][h, g] * logits[h] for h in range(heads)) for g in range(heads)]
        weights = [paper.softmax(scores, allowed[b]) for scores in mixed]
        spoken = [sum(w["mix_weights"][h, g] * weights[h] for h in range(heads)) for g in range(heads)]
        out.append(join([spoken[g] @ columns(v, g, width) for g in range(heads)], w))
    return np.stack(out)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def cosine(x, source, w, allowed, *, heads):
    """2010.04245: softmax(g · Q̂ K̂ᵀ) V, each row of Q̂ and K̂ of a head divided by its Euclidean length."""

    def look(_, q, k, v, allowed):
        return paper.softmax(w["gain"] * (unit(q) @ unit(k).T), allowed) @ v

    return paper.multi_head_attention(x, source, w, heads, allowed, look=look)


def qk_norm(x, source, w, allowed, *, heads, norm=paper.rms_norm, per_head=True):
    """2302.05442, section 2.1: softmax(LN(X W^Q) (LN(X W^K))ᵀ / √d) X W^V. Qwen 3's and Gemma 3's code has an RMS norm
    of each head, one weight for all; OLMo 2's (transformers, models/olmo2) one of all heads, before they are parted."""
    w_q, w_k = w["query_norm.weight"], w["key_norm.weight"]

    def look(_, q, k, v, allowed):
        return paper.scaled_dot_product_attention(norm(q, w_q), norm(k, w_k), v, allowed)

    if per_head:
        return paper.multi_head_attention(x, source, w, heads, allowed, look=look)
    out, width = [], w_q.shape[0] // heads
    for b in range(len(x)):
        q, k = norm(project(x[b], w, "query"), w_q), norm(project(source[b], w, "key"), w_k)
        parts = [[columns(t, h, width) for t in (q, k, project(source[b], w, "value"))] for h in range(heads)]
        out.append(join([paper.scaled_dot_product_attention(*qkv, allowed[b]) for qkv in parts], w))
    return np.stack(out)


def sinks(x, source, w, allowed, *, heads):
    """2508.10925, section 2.3, and gpt-oss' code: a learned number b_h of each head is one more logit of its softmax,
    whose weight is dropped: exp(s_j) / (exp(b_h) + Σ_k exp(s_k)). b_h = 0 is softmax1 of "Attention Is Off By One"."""

    def look(h, q, k, v, allowed):
        sink = w["sink"][h] if "sink" in w else 0.0
        powers = np.where(allowed, np.exp(q @ k.T / math.sqrt(q.shape[-1])), 0.0)
        return powers / (np.exp(sink) + powers.sum(-1, keepdims=True)) @ v

    return paper.multi_head_attention(x, source, w, heads, allowed, look=look)


def sigmoid(x, source, w, allowed, *, heads, length=None):
    """2409.04431, equation 3: σ(Q Kᵀ / √d + b) V with b = −log n, n the length of the sequence: here of what a query
    may see, or `length`."""

    def look(_, q, k, v, allowed):
        n = allowed.sum(-1, keepdims=True) if length is None else length
        return np.where(allowed, paper.sigmoid(q @ k.T / math.sqrt(q.shape[-1]) - np.log(n)), 0.0) @ v

    return paper.multi_head_attention(x, source, w, heads, allowed, look=look)


def scalable_softmax(x, source, w, allowed, *, heads):
    """2501.19399, equations 2 and 3: SSMax turns z_j into n^(s z_j) / Σ_k n^(s z_k) for an input of size n, s learned for
    each head; z are the scaled scores of what a query may see."""

    def look(h, q, k, v, allowed):
        powers = np.where(
            allowed, allowed.sum(-1, keepdims=True) ** (w["scale"][h] * (q @ k.T) / q.shape[-1] ** 0.5), 0.0
        )
        return powers / powers.sum(-1, keepdims=True) @ v

    return paper.multi_head_attention(x, source, w, heads, allowed, look=look)


def value_residual(x, source, w, allowed, *, heads):
    """2410.17897: the first layer's values are its own; those of others stand in `test_value_residual_papers.py`."""
    return paper.multi_head_attention(x, source, w, heads, allowed)


def exclusive(x, source, w, allowed, *, heads):
    """2603.09078: z_i = y_i − (y_iᵀ v_i) v_i / ‖v_i‖², y_i what a head of attention gives at i, and v_i its value there."""

    def look(_, q, k, v, allowed):
        y = paper.scaled_dot_product_attention(q, k, v, allowed)
        return np.stack([y[i] - (y[i] @ v[i]) / (v[i] @ v[i]) * v[i] for i in range(len(y))])

    return paper.multi_head_attention(x, source, w, heads, allowed, look=look)


def canon(x, source, w, allowed, *, heads):
    """Canon-A: 2512.17351's layer of the tokens, and then attention as it was; `source` is x."""
    mixed = canon_layer(x, w)
    return multihead(mixed, mixed, w, heads, allowed)


def merged(x, source, w, allowed, *, heads):
    """2512.14856: self- and cross-attention of a decoder as one, with shared matrices, over keys and values of both; the
    memory's come first here, the text's in the paper. `source` is the memory."""
    return paper.multi_head_attention(x, np.concatenate([source, x], 1), w, heads, allowed)


def gated(x, source, w, allowed, *, heads, inner=None):
    """2505.06708: Y' = Y ⊙ σ(X W_θ), with Y the output of the heads before the output projection (its
    position G1), a number for each channel of each head, X the input of the layer."""
    out = []
    for b in range(len(x)):
        gate = paper.sigmoid(project(x[b], w, "gate"))
        gate = np.repeat(gate, w["query.weight"].shape[1] // gate.shape[1], 1)  # of each channel, or of a head

        def gated(y, gate=gate):
            return gate * y if inner is None else inner(gate * y)

        one = slice(b, b + 1)
        out.append(paper.multi_head_attention(x[one], source[one], w, heads, allowed[one], inner=gated)[0])
    return np.stack(out)


def differential(x, source, w, allowed, *, heads, site):
    """2410.05258, equations 1 to 3: (softmax(Q₁ K₁ᵀ / √d) − λ softmax(Q₂ K₂ᵀ / √d)) V with V twice as wide,
    λ = exp(λ_q1 · λ_k1) − exp(λ_q2 · λ_k2) + λ_init, λ_init = 0.8 − 0.6 exp(−0.3 (l − 1)) for layer l = 1, 2, …, and
    head_i ← (1 − λ_init) · RMSNorm(head_i). `heads` is what a Transformer of the same size has; here there are half as
    many. Each head's columns of W^Q are those of Q₁, then those of Q₂, and W^K's alike."""
    start = 0.8 - 0.6 * math.exp(-0.3 * (site.layer + 1 - 1))
    subtracted = math.exp(w["lambda_q1"] @ w["lambda_k1"]) - math.exp(w["lambda_q2"] @ w["lambda_k2"]) + start
    out, d = [], w["query.weight"].shape[1] // heads
    for b in range(len(x)):
        q, k, v = project(x[b], w, "query"), project(source[b], w, "key"), project(source[b], w, "value")
        per_head = []
        for h in range(heads // 2):
            first, second = (
                paper.softmax(columns(q, 2 * h + i, d) @ columns(k, 2 * h + i, d).T / math.sqrt(d), allowed[b])
                for i in range(2)
            )
            y = (first - subtracted * second) @ columns(v, h, 2 * d)
            per_head.append((1 - start) * paper.rms_norm(y, w["head_norm.weight"], eps=1e-5))
        out.append(join(per_head, w))
    return np.stack(out)


# ------------------------------------------------------------------------- in the place of dot products


def synthesizer(x, valid, w, *, causal, heads, max_length):
    """Y = softmax(B) G(X), B_i = W_2 max(0, W_1 x_i + b_1) + b_2 (Dense Synthesizer) or B = R, or R_1 R_2ᵀ (Random and
    Factorized Random Synthesizer): 2005.00743; for each head, of which 1706.03762, section 3.2.2, makes one.

    B_i has an entry for each position below `max_length`. Ours: later positions take the last entry (the paper has none).
    """
    allowed = paper.visible(valid, x.shape[1], causal)
    last = [min(j, max_length - 1) for j in range(x.shape[1])]
    out = []
    for b in range(len(x)):
        value, per_head = project(x[b], w, "value"), []
        dim = value.shape[1] // heads
        if "rows" not in w:
            hidden = np.maximum(0, project(x[b], w, "hidden"))
        for h in range(heads):
            if "rows" not in w:
                units = w["columns"].shape[2]
                scores = hidden[:, h * units : (h + 1) * units] @ w["columns"][h].T
                scores = scores + w["column_bias"][h, :, 0] if "column_bias" in w else scores
            else:
                table = w["rows"][h] @ w["columns"][h].T if "columns" in w else w["rows"][h]
                scores = table[last]
            weights = paper.softmax(scores[:, last], allowed[b])
            per_head.append(weights @ columns(value, h, dim))
        out.append(join(per_head, w))
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


def recurrent(x, valid, w, *, causal):
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
        out.append(join([together], w))
    return np.stack(out)


def convolution(x, valid, w, *, causal, heads):
    """LightConv(X, W_h, i, c) = Σ_j softmax(W_h)_j X_{i + j − ⌈(k + 1) / 2⌉, c} for j = 1 … k, or W = f(X_i)
    (DynamicConv): 1901.10430, sections 3 and 4; between a gated linear unit and an output matrix (section 3, "Module").

    In a decoder the kernel ends at i; what is no token is zero.
    """
    out = []
    for text, real in zip(x, valid):
        gate = paper.sigmoid(project(text, w, "gate"))
        u = project(text, w, "value") * gate * real[:, None]
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
        out.append(join([together], w))
    return np.stack(out)


# ------------------------------------------------------- what keeps something else than keys and values


def mla(x, source, w, allowed, *, heads, inner=None):
    """2405.04434, equations 9 to 19 and 37 to 47: c_j = W^DKV h_j, k_j,h = [W_h^UK c_j; RoPE(W^KR h_j)], v_j,h = W_h^UV
    c_j, q_i,h = [W_h^Q x_i; RoPE(W_h^QR x_i)], softmax_j(q · k / sqrt(d_h + d_h^R)); x_i the latent W^DQ h_i where
    queries have one. RMS norms of the latents: section 3.1.2, and modeling_deepseek.py."""
    d, r = (w[f"{name}.weight"].shape[1] // heads for name in ("query", "rotated_query"))

    out = []
    for b in range(len(x)):
        asked = x[b]
        if "query_latent.weight" in w:
            asked = paper.rms_norm(asked @ w["query_latent.weight"], w["query_norm.weight"])
        c = paper.rms_norm(source[b] @ w["latent.weight"], w["latent_norm.weight"])
        shared = source[b] @ w["rotated_key.weight"]
        per_head = []
        for h in range(heads):
            q = np.concatenate(
                [columns(asked @ w["query.weight"], h, d), columns(asked @ w["rotated_query.weight"], h, r)], -1
            )
            k = np.concatenate([columns(c @ w["key.weight"], h, d), shared], -1)
            weights = paper.softmax(q @ k.T / math.sqrt(d + r), allowed[b])
            per_head.append(weights @ columns(c @ w["value.weight"], h, d))
        out.append(join(per_head, w, inner))
    return np.stack(out)


def forgetting(x, valid, w, *, heads):
    """2503.02130, equations 6 and 7: o_i = Σ_j F_ij exp(q_i·k_j / √d) v_j / Σ_j F_ij exp(q_i·k_j / √d), F_ij = Π_{l =
    j+1 … i} f_l, f_t = σ(w_f x_t + b_f), j ≤ i. Ours: of a text with padding, the real tokens alone."""
    out = np.zeros_like(x)
    for b in range(len(x)):
        text, per_head = x[b][valid[b]], []
        gates = paper.sigmoid(paper.affine(text, w["forget.weight"], w["forget.bias"]))
        q, k, v = (paper.affine(text, w[f"{n}.weight"], w.get(f"{n}.bias")) for n in ("query", "key", "value"))
        d = q.shape[1] // heads
        for h in range(heads):
            a, c, rows = columns(q, h, d), columns(k, h, d), []
            for i in range(len(text)):
                kept = [np.prod(gates[j + 1 : i + 1, h]) for j in range(i + 1)]
                weights = kept * np.exp(np.stack(c[: i + 1]) @ a[i] / math.sqrt(d))
                rows.append(weights @ columns(v[: i + 1], h, d) / weights.sum())
            per_head.append(np.stack(rows))
        out[b][valid[b]] = join(per_head, w)
    return out


def silu(t):
    return t * paper.sigmoid(t)


def gated_deltanet(x, valid, w, *, heads):
    """2412.06464, equation 10: S_t = S_{t−1} (α_t (I − β_t k_t k_tᵀ)) + β_t v_t k_tᵀ, o_t = S_t q_t, token by token;
    around it figure 1 and the authors' layer: short convolutions, SiLU, L2 norms, α = exp(−A softplus(x W + dt)), β =
    σ(x W), scale 1 / √d_k, a gated RMS norm. Of a text with padding, the real tokens alone."""
    d = w["query.weight"].shape[1] // heads

    def fade(text):
        return np.repeat(text @ w["fade.weight"] + w["fade_bias"], d, -1)

    return delta_rule(x, valid, w, heads, fade, lambda text: silu(text @ w["gate.weight"]))


def kimi_delta(x, valid, w, *, heads):
    """2510.26692, equation 1: S_t = (I − β_t k_t k_tᵀ) Diag(α_t) S_{t−1} + β_t k_t v_tᵀ, o_t = S_tᵀ q_t, and section 4:
    α and the output gate, a sigmoid, by two matrices each. All else as `gated_deltanet`."""

    def fade(text):
        return text @ w["fade.0.weight"] @ w["fade.1.weight"] + w["fade_bias"]

    def gate(text):
        return paper.sigmoid(text @ w["gate.0.weight"] @ w["gate.1.weight"] + w["gate.1.bias"])

    return delta_rule(x, valid, w, heads, fade, gate)


def delta_rule(x, valid, w, heads, fade, gate):
    """`fade` gives what softplus takes, for each channel of the keys, `gate` what the norms are multiplied by."""
    out = np.zeros_like(x)
    for b in range(len(x)):
        text = x[b][valid[b]]
        projected = np.concatenate([text @ w[f"{name}.weight"] for name in ("query", "key", "value")], -1)
        width = len(w["kernel"])
        padded = np.concatenate([np.zeros((width - 1, projected.shape[1])), projected])
        convolved = silu(np.stack([(padded[t : t + width] * w["kernel"]).sum(0) for t in range(len(text))]))
        d, e = w["query.weight"].shape[1] // heads, w["value.weight"].shape[1] // heads
        q, k, v = np.split(convolved, [heads * d, 2 * heads * d], -1)
        alpha = np.exp(-np.repeat(np.exp(w["log_rate"]), d) * np.log1p(np.exp(fade(text))))
        beta = paper.sigmoid(text @ w["write.weight"])
        gates, per_head = gate(text), []
        for h in range(heads):
            state, rows = np.zeros((e, d)), []
            for t in range(len(text)):
                a, c = (columns(y[t], h, d) for y in (q, k))
                a, c = (y / np.sqrt(y @ y + 1e-6) for y in (a, c))
                state = (state * columns(alpha[t], h, d)) @ (np.eye(d) - beta[t, h] * np.outer(c, c))
                state = state + beta[t, h] * np.outer(columns(v[t], h, e), c)
                rows.append(state @ a / math.sqrt(d))
            per_head.append(paper.rms_norm(np.stack(rows), w["norm.weight"], eps=1e-5) * columns(gates, h, e))
        out[b][valid[b]] = join(per_head, w)
    return out
