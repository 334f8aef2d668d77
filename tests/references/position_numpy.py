"""Every positional encoding of the zoo in NumPy, as its paper has it: `plugin check … --reference position_numpy.py`.

What is added to embeddings is a function of x [B, T, C] and positions [T]; what acts in attention is the attention of one
head h, q [T, D], k [S, D] and v [S, D] → [T, D], under it. w: name → parameter. `q_positions` and `k_positions` None: 0, 1
… of a text.
"""

import functools
import math

import numpy as np
import paper_equations as paper


def places(rows, positions):
    return np.arange(len(rows)) if positions is None else np.asarray(positions)


def softplus(x):
    return np.log1p(np.exp(x))


# ------------------------------------------------------------------------------------------------ added to embeddings


def none(x):
    return x


def sinusoidal(x, positions, base=10000.0, halves=False):
    if halves:  # tensor2tensor's get_timing_signal_1d: num_timescales = channels // 2
        scales = np.exp(-np.arange(x.shape[-1] // 2) * np.log(base) / (x.shape[-1] // 2 - 1))
        angles = np.asarray(positions)[..., None] * scales
        return x + np.concatenate([np.sin(angles), np.cos(angles)], -1)
    return x + paper.sinusoidal(positions, x.shape[-1], base)


def learned(x, positions, w):
    """e = (w_1 + p_1, …, w_m + p_m): 1705.03122, section 3.1; 1706.03762, section 3.5."""
    return np.stack([x[:, t] + w["weight"][p] for t, p in enumerate(positions)], 1)


def scaled_sinusoidal(x, positions, w, base=10000.0):
    """x_i = prenet(phoneme_i) + α PE(i): 1809.08895, section 3.2."""
    return x + w["alpha"][0] * paper.sinusoidal(positions, x.shape[-1], base)


def randomized(x, positions, max_length, longest=None, stride=None):
    """RPE(j, ·) := PE(i_j, ·) with I = {i_1 < … < i_n} a subset of {1 … L} drawn without replacement: 2305.16843, over
    sinusoidal positions. (Ours counts from 0; in evaluation i_j = j · stride, by default L / max_length.)"""
    longest = max_length if longest is None else longest
    stride = max(1, longest // max_length) if stride is None else stride
    return x + paper.sinusoidal(np.asarray(positions) * stride, x.shape[-1])


def chain(x, positions, w):
    """Of `sinusoidal`, then `learned`."""
    return learned(sinusoidal(x, positions), positions, {"weight": w["parts.1.weight"]})


# ----------------------------------------------------------------------------------------------------- turned by angles


def turned_scores(q, k, theta, q_positions=None, k_positions=None):
    """Re Σ_d q_d k_d* e^{iθ_d(n−m)}, pairs being neighbouring channels."""
    apart = places(q, q_positions)[:, None] - places(k, k_positions)[None, :]
    q, k = (rows[:, 0::2] + 1j * rows[:, 1::2] for rows in (q, k))
    return np.einsum("nd,md,nmd->nm", q, k.conj(), np.exp(1j * apart[..., None] * theta)).real


def rotary(h, q, k, v, allowed, base=10000.0, fraction=1.0, q_positions=None, k_positions=None):
    """2104.09864, equation 16, with θ_d = base^{−2d/R}. R: of D, GPT-NeoX (2204.06745) turns the first channels only."""
    width = int(q.shape[1] * fraction)
    theta = base ** (-2 * np.arange(width // 2) / width)
    scores = turned_scores(q[:, :width], k[:, :width], theta, q_positions, k_positions) + q[:, width:] @ k[:, width:].T
    return paper.softmax(scores / math.sqrt(q.shape[1]), allowed) @ v


def nope_hybrid(h, q, k, v, allowed, every, site, q_positions=None, k_positions=None):
    """Llama 4's configuration: layers i from 0 with (i + 1) % 4 == 0 have no positions, the others are rotary; 2501.18795
    has one in four as well."""
    if (site.layer + 1) % every == 0:
        return paper.scaled_dot_product_attention(q, k, v, allowed)
    return rotary(h, q, k, v, allowed, q_positions=q_positions, k_positions=k_positions)


def yarn_frequencies(width, factor, length, base=10000.0, fast=32.0, slow=1.0):
    """2309.00071, section 3.2: h(θ_d) = (1 − γ) θ_d / s + γ θ_d, γ 0 below α = 1 turns within L, 1 above β = 32, between
    them linear in the turns. The authors' code (LlamaYaRNScaledRotaryEmbedding) has it linear in d, from the largest
    integer at which a pair turns β times to the smallest at which it turns α times."""
    theta = np.array([base ** (-2 * d / width) for d in range(width // 2)])
    low, high = (width * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base)) for turns in (fast, slow))
    low, high = max(math.floor(low), 0), min(math.ceil(high), width - 1)
    high = high + 0.001 if low == high else high  # as in the authors' code
    gamma = [1 - min(max((d - low) / (high - low), 0.0), 1.0) for d in range(width // 2)]
    return np.array([(1 - g) * t / factor + g * t for g, t in zip(gamma, theta)])


def yarn(
    h, q, k, v, allowed, max_length=0, factor=16.0, trained_length=None, base=10000.0, fast=32.0, slow=1.0,
    q_positions=None, k_positions=None,
):  # fmt: skip
    """softmax(qᵀk / (t sqrt(d))) with sqrt(1 / t) = 0.1 ln(s) + 1: 2309.00071, equations 21 and 22."""
    length = max(1.0, max_length / factor) if trained_length is None else trained_length
    theta = yarn_frequencies(q.shape[1], factor, length, base, fast, slow)
    temperature = (0.1 * math.log(factor) + 1) ** -2
    scores = turned_scores(q, k, theta, q_positions, k_positions)
    return paper.softmax(scores / (temperature * math.sqrt(q.shape[1])), allowed) @ v


def xpos(h, q, k, v, allowed, base=10000.0, scale_base=512.0, gamma=0.4, q_positions=None, k_positions=None):
    """2212.10554: the product of f_q(q, n) = A e^{iθn} ζ^n and f_k(k, m) = A e^{iθm} ζ^{−m} is
    Re Σ_i (q_i k_i*) e^{iθ_i(n−m)} ζ_i^{n−m}, here in powers of (n − m) / scale base, ζ_i = (i / (d/2) + γ) / (1 + γ)
    with γ = 0.4, and θ_i = 10000^{−2i/d}."""
    width = q.shape[-1]
    n, m = places(q, q_positions), places(k, k_positions)
    q, k = (rows[:, 0::2] + 1j * rows[:, 1::2] for rows in (q, k))
    i = np.arange(width // 2)
    zeta, theta = (i / (width / 2) + gamma) / (1 + gamma), base ** (-2.0 * i / width)
    apart = np.maximum(n[:, None] - m[None, :], 0)[..., None]  # what is ahead is not allowed
    scores = np.einsum("nd,md,nmd->nm", q, k.conj(), np.exp(1j * theta * apart) * zeta ** (apart / scale_base)).real
    return paper.softmax(scores / math.sqrt(width), allowed) @ v


def pope(h, q, k, v, allowed, w, base=10000.0, q_positions=None, k_positions=None):
    """2509.10534, equation 6: a_ts = Σ_c μ_tc μ_sc cos((s − t) θ_c + δ_c) with μ = softplus, equation 3, divided by √d; δ in
    [−2π, 0], and θ_c = base^{−(c−1)/d}, the minus as in rotary."""
    theta = base ** (-np.arange(q.shape[1]) / q.shape[1])
    delta = np.clip(w["delta"][h], -2 * math.pi, 0.0)
    apart = places(k, k_positions)[None, :] - places(q, q_positions)[:, None]  # s − t
    angles = np.cos(apart[..., None] * theta + delta)
    scores = np.einsum("tc,sc,tsc->ts", softplus(q), softplus(k), angles)
    return paper.softmax(scores / math.sqrt(q.shape[1]), allowed) @ v


# --------------------------------------------------------------------------------------------- added to scaled scores


def alibi(h, q, k, v, allowed, num_heads, q_positions=None, k_positions=None):
    bias = paper.alibi_bias(paper.alibi_slopes(num_heads), places(q, q_positions), places(k, k_positions))
    return paper.scaled_dot_product_attention(q, k, v, allowed, bias[h])


def t5(h, q, k, v, allowed, w, buckets, max_distance, causal, q_positions=None, k_positions=None):
    """A scalar for each range of offsets, ranges growing logarithmically up to `max_distance`: 1910.10683, section 2.1. As
    the authors' code counts them: half of a direction's buckets hold one offset each, and where both directions are
    seen, the later half of the table is for m > n."""

    @functools.cache
    def bucket(distance):
        most, offset = buckets, 0
        if not causal:
            most //= 2
            offset, distance = (most if distance < 0 else 0), abs(distance)
        distance, exact = max(distance, 0), most // 2
        if distance >= exact:
            grown = math.log(distance / exact) / math.log(max_distance / exact) * (most - exact)
            distance = min(exact + math.floor(grown), most - 1)
        return offset + distance

    numbers = [[bucket(int(n - m)) for m in places(k, k_positions)] for n in places(q, q_positions)]
    return paper.scaled_dot_product_attention(q, k, v, allowed, w["table"][np.array(numbers), h])


def kerple(h, q, k, v, allowed, w, kernel="log", q_positions=None, k_positions=None):
    """2205.09921: −r1 log(1 + r2 |m − n|) with r1, r2 > 0, or −r1 |m − n|^r2 with r1 > 0 and 0 < r2 ≤ 2. (Ours: r1 =
    softplus of a parameter, r2 that or twice its sigmoid.)"""

    r1, distance = softplus(w["raw1"][h]), np.abs(places(q, q_positions)[:, None] - places(k, k_positions)[None, :])
    if kernel == "log":
        bias = -r1 * np.log(1 + softplus(w["raw2"][h]) * distance)
    else:
        bias = -r1 * distance ** (2 * paper.sigmoid(w["raw2"][h]))
    return paper.scaled_dot_product_attention(q, k, v, allowed, bias)


def fire(h, q, k, v, allowed, w, threshold, causal, q_positions=None, k_positions=None):
    """f(ψ(i − j) / ψ(max(L, i))), ψ(x) = log(c x + 1): 2310.04418. f: 1 → width → H with a ReLU.

    1e-6 in the divisor and absolute values of c and L are the authors' code's. Where keys behind the query are seen,
    ours takes |i − j| and max(L, i, j); before it they are the paper's. Ours has no bias at the end of f.
    """
    c, most = abs(w["c"][0]), abs(w["factor"][0]) * threshold
    n, m = places(q, q_positions)[:, None], places(k, k_positions)[None, :]
    last = n if causal else np.maximum(n, m)
    share = np.log(c * np.abs(n - m) + 1) / (np.log(c * np.maximum(most, last) + 1) + 1e-6)
    hidden = np.maximum(0, share[..., None] * w["inner.weight"][0] + w["inner.bias"])
    return paper.scaled_dot_product_attention(q, k, v, allowed, hidden @ w["outer.weight"][:, h])


# ------------------------------------------------------------------------------ of what queries, keys and values hold


def shaw(h, q, k, v, allowed, w, clip, q_positions=None, k_positions=None):
    tables = w["key_table"], w.get("value_table")
    return paper.shaw_attention(q, k, v, places(q, q_positions), places(k, k_positions), *tables, clip, allowed)


def grape_a(h, q, k, v, allowed, w, num_heads, causal, q_positions=None, k_positions=None):
    """2512.07805, equation 4.6, with j − i ≤ 0: q_iᵀ k_j / √d + (j − i) ω (softplus(vᵀ q_i / √d) + softplus(uᵀ k_j / √d));
    as in its code v and u have length 1, and ω is a softplus times ALiBi's slope."""
    root = math.sqrt(q.shape[1])
    (of_query, of_key) = (w[name][h] / np.linalg.norm(w[name][h]) for name in ("of_query", "of_key"))
    gates = softplus(q @ of_query / root)[:, None] + softplus(k @ of_key / root)[None, :]
    apart = places(k, k_positions)[None, :] - places(q, q_positions)[:, None]
    apart = apart if causal else -np.abs(apart)
    slope = softplus(w["rate"][h]) * paper.alibi_slopes(num_heads)[h]
    return paper.scaled_dot_product_attention(q, k, v, allowed, apart * slope * gates)


def transformer_xl(h, q, k, v, allowed, w, base=10000.0, q_positions=None, k_positions=None):
    """1901.02860, section 3.3: A_ij = q_iᵀ k_j + q_iᵀ W R_{i−j} + uᵀ k_j + vᵀ W R_{i−j}, divided by sqrt(d) as in its
    code.

    R interleaves sines and cosines; the paper's code has the sines first, which permutes W's rows."""
    dim, n, m = q.shape[-1], places(q, q_positions), places(k, k_positions)
    projection = w["relative.weight"][:, h * dim : (h + 1) * dim]
    r = paper.sinusoidal(n[:, None] - m[None, :], len(projection), base) @ projection  # [T, S, D]
    scores = q @ k.T + np.einsum("id,ijd->ij", q, r) + w["u"][h] @ k.T + r @ w["v"][h]
    return paper.softmax(scores / math.sqrt(dim), allowed) @ v


def cope(h, q, k, v, allowed, w):
    """2405.18719, equations 3 to 5: g_ij = σ(q_i k_j), p_ij = Σ_{k=j}^{i} g_ik, at most p_max, and
    a_ij = softmax(q_iᵀ (k_j + e[p_ij])), e[p] = (p − ⌊p⌋) e[⌈p⌉] + (1 − p + ⌊p⌋) e[⌊p⌋]; both products over sqrt(d) as in
    the authors' code."""
    dim, table, scores = q.shape[-1], w["table"], np.zeros((len(q), len(k)))
    gates = paper.sigmoid(q @ k.T / math.sqrt(dim))
    for i in range(len(q)):
        p = np.minimum([gates[i, j : i + 1].sum() for j in range(i + 1)], len(table) - 1)
        low, high, part = np.floor(p).astype(int), np.ceil(p).astype(int), (p - np.floor(p))[:, None]
        scores[i, : i + 1] = (k[: i + 1] + part * table[high] + (1 - part) * table[low]) @ q[i]
    return paper.softmax(scores / math.sqrt(dim), allowed) @ v
