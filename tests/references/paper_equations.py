"""What the papers say, in NumPy and float64: each function is one equation, written from the paper and not from our
code.

Loops are meant: they follow the indices of the equations. Shapes as in `paddle_tfm.protocols`: B batch, T length, S
source length, C d_model, H heads, D head_dim, V vocabulary. Where a paper leaves something open, or our components do
something that it does not say, the docstring says so.
"""

from __future__ import annotations

import math

import numpy as np

# ------------------------------------------------------------------------------------------------------- functions


def affine(x, weight, bias=None):
    """x W + b."""
    return x @ weight if bias is None else x @ weight + bias


def softmax(scores, allowed=None):
    """exp(s_j) / Σ_k exp(s_k) over the last axis; what is not `allowed` has score −∞ (1706.03762, section 3.2.3)."""
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def normal_cdf(x):
    """Φ(x)."""
    return 0.5 * (1 + np.vectorize(math.erf)(np.asarray(x, dtype=np.float64) / math.sqrt(2)))


def visible(k_valid, queries, causal):
    """bool [B, Tq, Tk]: no key of padding; if `causal`, key j only for queries i ≥ j (1706.03762, section 3.2.3)."""
    allowed = np.repeat(k_valid[:, None, :], queries, axis=1)
    return allowed & np.tril(np.ones((queries, k_valid.shape[1]), dtype=bool)) if causal else allowed


# ------------------------------------------------------------------------------------------------------- attention


def scaled_dot_product_attention(q, k, v, allowed=None, bias=None):
    """softmax(Q Kᵀ / sqrt(d_k)) V for Q [T, d_k], K [S, d_k], V [S, d_v]: 1706.03762, equation 1.

    `bias` [T, S] is added to the scaled scores (ALiBi).
    """
    scores = q @ k.T / math.sqrt(q.shape[-1])
    return softmax(scores if bias is None else scores + bias, allowed) @ v


def multi_head_attention(x, source, w, heads, allowed, *, look=None, inner=None):
    """Concat(head_1, …, head_h) Wᴼ with head_i = Attention(x W_iᵠ, source W_iᴷ, source W_iⱽ): 1706.03762, section
    3.2.2.

    The widths of the heads are those of the matrices: with d_model columns a head this is the variant whose heads are
    each as wide as the model. `look(h, q, k, v, allowed)` replaces equation 1 for head h (position encodings); `inner`
    normalizes the concatenated heads before Wᴼ (Sub-LN, 2210.06423, section 2.1).
    """
    out = []
    for b in range(len(x)):
        q, k, v = (
            affine(t[b], w[f"{name}.weight"], w.get(f"{name}.bias"))
            for name, t in (("query", x), ("key", source), ("value", source))
        )
        dim, per_head = q.shape[-1] // heads, []
        for h in range(heads):
            columns = slice(h * dim, (h + 1) * dim)
            parts = q[:, columns], k[:, columns], v[:, columns]
            per_head.append(
                scaled_dot_product_attention(*parts, allowed[b]) if look is None else look(h, *parts, allowed[b])
            )
        together = np.concatenate(per_head, -1)
        together = together if inner is None else inner(together)
        out.append(affine(together, w["output.weight"], w.get("output.bias")))
    return np.stack(out)


def elu_feature_map(x):
    """φ(x) = elu(x) + 1: 2006.16236, equation 7."""
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0))) + 1


def linear_attention_sum(q, k, v, allowed):
    """V'_i = Σ_j φ(q_i)ᵀφ(k_j) v_j / Σ_j φ(q_i)ᵀφ(k_j): 2006.16236, equation 4, and causally equation 8.

    j runs over the keys that i may see. No 1/sqrt(D): the paper has none here.
    """
    weights = elu_feature_map(q) @ elu_feature_map(k).T * allowed
    return weights @ v / weights.sum(-1, keepdims=True)


def multi_head_linear_attention(x, source, w, heads, allowed, *, inner=None):
    """Linear attention in each head of 1706.03762, section 3.2.2."""

    def look(_, q, k, v, allowed):
        return linear_attention_sum(q, k, v, allowed)

    return multi_head_attention(x, source, w, heads, allowed, look=look, inner=inner)


# ------------------------------------------------------------------------------------------------------- positions


def sinusoidal(positions, width, base=10000.0):
    """PE(p, 2i) = sin(p / base^(2i/d)), PE(p, 2i+1) = cos(same): 1706.03762, section 3.5."""
    table = np.empty((*np.shape(positions), width))
    for channel in range(width):
        angle = np.asarray(positions) / base ** (2 * (channel // 2) / width)
        table[..., channel] = np.sin(angle) if channel % 2 == 0 else np.cos(angle)
    return table


def rotary(x, m, base=10000.0):
    """R_m x for x [D]: 2104.09864, equation 34 (the products of equation 15), θ_i = base^(−2(i−1)/D).

    (x1, x2, x3, x4 …) ⊗ (cos mθ1, cos mθ1, cos mθ2 …) + (−x2, x1, −x4, x3 …) ⊗ (sin mθ1, sin mθ1, sin mθ2 …)
    """
    width = len(x)
    theta = np.repeat([base ** (-2 * i / width) for i in range(width // 2)], 2)
    turned = np.empty(width)
    turned[0::2], turned[1::2] = -x[1::2], x[0::2]
    return x * np.cos(m * theta) + turned * np.sin(m * theta)


def rotary_attention(q, k, v, q_positions, k_positions, allowed, base=10000.0):
    """Equation 1 of 1706.03762 over rotated queries and keys (2104.09864, equation 16)."""
    q = np.stack([rotary(row, m, base) for row, m in zip(q, q_positions)])
    k = np.stack([rotary(row, n, base) for row, n in zip(k, k_positions)])
    return scaled_dot_product_attention(q, k, v, allowed)


def alibi_slopes(heads):
    """ "In general, for n heads, our set of slopes is the geometric sequence that starts at 2^(−8/n) and uses that same
    value as its ratio": 2108.12409, section 3."""
    return np.array([2.0 ** (-8.0 * h / heads) for h in range(1, heads + 1)])


def alibi_bias(slopes, q_positions, k_positions):
    """[H, T, S]: −m_h (i − j) for the keys before the query, 2108.12409, section 3.

    The paper is causal; on a side that sees both ways the distance is taken absolute.
    """
    return -slopes[:, None, None] * np.abs(q_positions[:, None] - k_positions[None, :])


def shaw_attention(q, k, v, q_positions, k_positions, key_table, value_table, clip, allowed):
    """1803.02155: e_ij = q_i (k_j + a^K_ij)ᵀ / sqrt(d_z) (equation 4), z_i = Σ_j α_ij (v_j + a^V_ij) (equation 3), and
    a_ij = w_{clip(j − i, k)} (section 3.2). `value_table` None: without its term in equation 3 (section 4.3)."""
    out = []
    for i in range(len(q)):
        at = np.clip(k_positions - q_positions[i], -clip, clip) + clip  # of each key
        alpha = softmax((k + key_table[at]) @ q[i] / math.sqrt(q.shape[-1]), allowed[i])
        out.append(alpha @ (v if value_table is None else v + value_table[at]))
    return np.stack(out)


# ----------------------------------------------------------------------------------------------------------- norms


def layer_norm(x, weight, bias=None, eps=1e-5):
    """g / σ ⊗ (a − μ) + b, μ and σ over the channels of one token: 1607.06450, equations 3 and 4 (σ² + ε under the
    root). ε is the number of float32 beside it, as `paddle.nn.functional.layer_norm` takes it for float64 too."""
    mean = x.mean(-1, keepdims=True)
    sigma = np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + float(np.float32(eps)))
    y = weight / sigma * (x - mean)
    return y if bias is None else y + bias


def rms_norm(x, weight, eps=1e-6):
    """a / RMS(a) · g, RMS(a) = sqrt(mean of a²): 1910.07467, equation 4 (ε under the root)."""
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight


def batch_statistics(x, valid):
    """Mean and (biased) variance of each channel over the real tokens, 1502.03167, algorithm 1, and their number m."""
    tokens = x[valid]
    mean = tokens.sum(0) / len(tokens)
    return mean, ((tokens - mean) ** 2).sum(0) / len(tokens), len(tokens)


def batch_norm(x, mean, variance, weight, bias, eps=1e-5):
    """γ (x − μ) / sqrt(σ² + ε) + β: 1502.03167, algorithm 1; with population statistics algorithm 2, line 11."""
    return weight * (x - mean) / np.sqrt(variance + eps) + bias


def moving(old, new, momentum):
    """A moving average of the batches' statistics (1502.03167, section 3.1, leaves its form open)."""
    return (1 - momentum) * old + momentum * new


def unbiased(variance, m):
    """Var[x] = m / (m − 1) · E[σ²]: 1502.03167, algorithm 2, line 10."""
    return variance * m / (m - 1)


# ------------------------------------------------------------------------------------------------------ placements


def pre_norm(x, branches, norms):
    """x ← x + f(n(x)): 2002.04745, table 1, right; a final norm follows the last layer."""
    for f, n in zip(branches, norms):
        x = x + f(n(x))
    return x


def sub_ln_gain(stack, encoder_layers, decoder_layers):
    """γ for an encoder-decoder with N and M layers: encoder sqrt(log(3M) log(2N) / 3), decoder sqrt(log(3M)); it scales
    the feed-forward matrices and the value and output projections: 2210.06423, figure 2."""
    if stack == "encoder":
        return math.sqrt(math.log(3 * decoder_layers) * math.log(2 * encoder_layers) / 3)
    return math.sqrt(math.log(3 * decoder_layers))


# ---------------------------------------------------------------------------------------------------- feed-forward


def feed_forward_relu(x, w, inner=None):
    """max(0, x W1 + b1) W2 + b2: 1706.03762, equation 2. `inner`: Sub-LN's norm before W2 (2210.06423, section 2.1)."""
    y = np.maximum(0, affine(x, w["inner.weight"], w.get("inner.bias")))
    y = y if inner is None else inner(y)
    return affine(y, w["output.weight"], w.get("output.bias"))


def feed_forward_swiglu(x, w, inner=None):
    """(Swish_1(x W) ⊗ x V) W2, Swish_1(x) = x σ(x): 2002.05202, equation 6. The paper has no biases."""
    gate = affine(x, w["gate.weight"], w.get("gate.bias"))
    y = gate * sigmoid(gate) * affine(x, w["up.weight"], w.get("up.bias"))
    y = y if inner is None else inner(y)
    return affine(y, w["output.weight"], w.get("output.bias"))


def top_k(values, k):
    """The indices of the k largest."""
    return np.argsort(-values, kind="stable")[:k]


def gates_shazeer(logits, k):
    """G(x) = Softmax(KeepTopK(H(x), k)), H(x) = x W_g without noise: 1701.06538, equations 3 and 5."""
    return softmax(logits, np.isin(np.arange(len(logits)), top_k(logits, k)))


def gates_switch(logits, k):
    """p_i(x) = softmax(W_r x)_i for the chosen experts, 0 for the others: 2101.03961, equations 1 and 2."""
    return np.where(np.isin(np.arange(len(logits)), top_k(logits, k)), softmax(logits), 0.0)


def mixture_of_experts(x, w, k, experts, gates):
    """y = Σ_i G(x)_i E_i(x): 1701.06538, equation 1; 2101.03961, equation 2. x [n, C], E_i a ReLU network."""
    parts = [
        {name.split(".", 2)[2]: value for name, value in w.items() if name.startswith(f"experts.{i}.")}
        for i in range(experts)
    ]
    out = []
    for row in x:
        g = gates(affine(row, w["router.weight"], w.get("router.bias")), k)
        out.append(sum(g[i] * feed_forward_relu(row, parts[i]) for i in range(experts) if g[i] != 0))
    return np.stack(out)


def balance_loss(logits, k, alpha):
    """α N Σ_i f_i P_i (2101.03961, equation 4), f_i the share of tokens sent to expert i (equation 5), P_i the mean of
    its router probability (equation 6). The paper has k = 1; for more, f_i is read as a share of the k T choices."""
    tokens, experts = logits.shape
    chosen = [top_k(row, k) for row in logits]
    f = np.array([sum(i in row for row in chosen) / (k * tokens) for i in range(experts)])
    p = softmax(logits).mean(0)
    return alpha * experts * float(f @ p)


# ----------------------------------------------------------------------------------------------------------- heads


def linear_head(h, weight, bias=None):
    """Probabilities softmax(h W + b): 1706.03762, section 3.4. Tied: W is the transposed embedding table
    (1608.05859)."""
    return softmax(affine(h, weight, bias))


def smoothed_cross_entropy(probabilities, target, smoothing, pad_id, vocabulary=None):
    """−Σ_k q'(k) log p(k), q'(k) = (1 − ε) δ(k, y) + ε u(k): 1512.00567, section 7. Our u: uniform over all tokens of
    the `vocabulary` (by default all there are) but padding. One token."""
    vocabulary = len(probabilities) if vocabulary is None else vocabulary
    q = np.zeros(len(probabilities))
    q[:vocabulary] = smoothing / (vocabulary - 1)
    q[pad_id] = 0.0
    q[target] += 1 - smoothing
    known = q > 0
    return -float((q[known] * np.log(probabilities[known])).sum())


def pointer_distribution(p_vocab, attention, copy_ids, p_gen, extra):
    """P(w) = p_gen P_vocab(w) + (1 − p_gen) Σ_{i: w_i = w} a_i over the vocabulary and `extra` source words:
    1704.04368, equation 9."""
    p = np.concatenate([p_gen * p_vocab, np.zeros(extra)])
    for weight, word in zip(attention, copy_ids):
        p[word] += (1 - p_gen) * weight
    return p


# -------------------------------------------------------------------------------------- schedules, optimizers, draws


def noam(step, d_model, warmup, factor=1.0):
    """factor · d_model^−0.5 · min(step^−0.5, step · warmup^−1.5): 1706.03762, equation 3."""
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def inverse_sqrt(step, peak, warmup):
    """1706.03762, equation 3, scaled so that its highest value, at step `warmup`, is `peak`."""
    return peak * noam(step, 1, warmup) / noam(warmup, 1, warmup)


def linear_warmup(step, peak, warmup):
    """step / W · η: 2404.06395, section 4.2 (WSD), first case."""
    return peak * step / warmup


def cosine(step, steps, peak, warmup, floor):
    """η_min + ½ (η_max − η_min)(1 + cos(π T_cur / T_i)): 1608.03983, equation 5, one period without restarts, after a
    linear warmup (not in that paper).

    As there, T_cur is 0 at a period's first step and would be T_i at the first step after it: η_min is never trained
    with.
    """
    if step < warmup:
        return linear_warmup(step, peak, warmup)
    first = max(warmup, 1)
    return floor + 0.5 * (peak - floor) * (1 + math.cos(math.pi * (step - first) / (steps + 1 - first)))


def wsd(step, steps, peak, warmup, decay, floor):
    """2404.06395, section 4.2: s/W η, then η until step T, then f(s − T) η. The paper leaves f open (decreasing, at
    most 1); ours is a line from η at T = (1 − decay) · steps to `floor` one step after the run."""
    stable_until, end = steps - decay * steps, steps + 1
    if step < warmup:
        return linear_warmup(step, peak, warmup)
    if step <= stable_until:
        return peak
    return peak + (floor - peak) * (step - stable_until) / (end - stable_until)


def adamw(theta, gradients, multipliers, beta1, beta2, eps, weight_decay):
    """1711.05101, algorithm 2, lines 5 to 12: θ ← θ − η_t (m̂ / (sqrt(v̂) + ε) + λ θ), α being 1, as libraries write it;
    with λ = 0 Adam, 1412.6980, algorithm 1."""
    m, v, path = np.zeros_like(theta), np.zeros_like(theta), []
    for t, (g, eta) in enumerate(zip(gradients, multipliers), start=1):
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g**2
        adaptive = (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)
        theta = theta - eta * (adaptive + weight_decay * theta)
        path.append(theta)
    return path


def glorot_bound(fan_in, fan_out):
    """sqrt(6) / sqrt(n_j + n_{j+1}): Glorot and Bengio 2010, equation 16 (the normalized initialization)."""
    return math.sqrt(6.0) / math.sqrt(fan_in + fan_out)


def uniform_cdf(x, low, high):
    return np.clip((x - low) / (high - low), 0.0, 1.0)


def kolmogorov_distance(sample, cdf):
    """sup |F_n − F|, and the value that it exceeds once in a thousand samples of this size (Kolmogorov's limit)."""
    x = np.sort(np.ravel(sample))
    n = len(x)
    f = cdf(x)
    return max((np.arange(1, n + 1) / n - f).max(), (f - np.arange(n) / n).max()), 1.95 / math.sqrt(n)
