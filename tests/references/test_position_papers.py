"""Every position encoding against its paper's equations, inside an attention, and the facts known about each."""

import functools
import math
from dataclasses import replace

import numpy as np
import paper_equations as paper
import pytest
from paper_cases import (
    CROSS,
    D_MODEL,
    DECODER,
    ENCODER,
    HEAD_DIM,
    HEADS,
    LENGTH,
    MAX_LENGTH,
    SITES,
    attend,
    positions,
    sentences,
)

GIVEN = {"d_model": D_MODEL, "num_heads": HEADS, "head_dim": HEAD_DIM, "max_length": MAX_LENGTH}
CLIP = 2


def sinusoidal(x, at, w):
    return x + paper.sinusoidal(at, D_MODEL)


def learned(x, at, w):
    return paper.learned(x, at, w["weight"])


def rotary(h, q, k, v, allowed, w):
    return paper.rotary_attention(q, k, v, np.arange(len(q)), np.arange(len(k)), allowed)


def alibi(h, q, k, v, allowed, w):
    bias = paper.alibi_bias(paper.alibi_slopes(HEADS), np.arange(len(q)), np.arange(len(k)))
    return paper.scaled_dot_product_attention(q, k, v, allowed, bias[h])


def shaw(h, q, k, v, allowed, w):
    tables = w["key_table"], w.get("value_table")
    return paper.shaw_attention(q, k, v, np.arange(len(q)), np.arange(len(k)), *tables, CLIP, allowed)


# ------------------------------------------------------------------------------- equations that only this file needs


def softplus(x):
    return np.log1p(np.exp(x))


def biased(bias):
    """Attention with `bias(n, m, h, w, causal)`, a number for query n, key m and head h, added to the scaled scores."""

    def look(h, q, k, v, allowed, w):
        terms = np.array([[bias(n, m, h, w, w["causal"]) for m in range(len(k))] for n in range(len(q))])
        return paper.scaled_dot_product_attention(q, k, v, allowed, terms)

    return look


def t5_bias(n, m, h, w, causal):
    """A scalar for each range of offsets, ranges growing logarithmically up to `T5_MOST`: 1910.10683, section 2.1. As
    the authors' code counts them: half of a direction's buckets hold one offset each, and where both directions are
    seen, the later half of the table is for m > n."""
    buckets, offset, distance = T5_BUCKETS, 0, n - m
    if not causal:
        buckets //= 2
        offset, distance = (buckets if m > n else 0), abs(distance)
    distance, exact = max(distance, 0), buckets // 2
    if distance >= exact:
        grown = math.log(distance / exact) / math.log(T5_MOST / exact) * (buckets - exact)
        distance = min(exact + math.floor(grown), buckets - 1)
    return w["table"][offset + distance, h]


def kerple_log_bias(n, m, h, w, causal):
    """−r1 log(1 + r2 |m − n|), r1, r2 > 0: the logarithmic variant of 2205.09921. (Ours: r = softplus of a
    parameter.)"""
    return -softplus(w["raw1"][h]) * math.log(1 + softplus(w["raw2"][h]) * abs(m - n))


def kerple_power_bias(n, m, h, w, causal):
    """−r1 |m − n|^r2, r1 > 0 and 0 < r2 ≤ 2: the power variant of 2205.09921. (Ours: r2 = twice the sigmoid of a
    parameter.)"""
    return -softplus(w["raw1"][h]) * abs(m - n) ** (2 * paper.sigmoid(w["raw2"][h])) if m != n else 0.0


def fire_bias(n, m, h, w, causal):
    """f(ψ(i − j) / ψ(max(L, i))), ψ(x) = log(c x + 1): 2310.04418. f: 1 → width → H with a ReLU.

    1e-6 in the divisor and absolute values of c and L are the authors' code's. Where keys behind the query are seen,
    ours takes |i − j| and max(L, i, j); before it they are the paper's. Ours has no bias at the end of f.
    """
    c, most = abs(w["c"][0]), abs(w["factor"][0]) * FIRE_L
    last = n if causal else max(n, m)
    share = math.log(c * abs(n - m) + 1) / (math.log(c * max(most, last) + 1) + 1e-6)
    hidden = np.maximum(0, share * w["inner.weight"][0] + w["inner.bias"])
    return hidden @ w["outer.weight"][:, h]


def transformer_xl(h, q, k, v, allowed, w):
    """1901.02860, section 3.3: A_ij = q_iᵀ k_j + q_iᵀ W R_{i−j} + uᵀ k_j + vᵀ W R_{i−j}, divided by sqrt(d) as in its
    code.

    R interleaves sines and cosines; the paper's code has the sines first, which permutes W's rows."""
    dim, scores = q.shape[-1], np.empty((len(q), len(k)))
    projection = w["relative.weight"][:, h * dim : (h + 1) * dim]
    for i, j in np.ndindex(*scores.shape):
        r = paper.sinusoidal(i - j, D_MODEL) @ projection
        scores[i, j] = q[i] @ k[j] + q[i] @ r + w["u"][h] @ k[j] + w["v"][h] @ r
    return paper.softmax(scores / math.sqrt(dim), allowed) @ v


def xpos(h, q, k, v, allowed, w):
    """2212.10554: the product of f_q(q, n) = A e^{iθn} ζ^n and f_k(k, m) = A e^{iθm} ζ^{−m} is
    Re Σ_i (q_i k_i*) e^{iθ_i(n−m)} ζ_i^{n−m}, here in powers of (n − m) / scale base, ζ_i = (i / (d/2) + γ) / (1 + γ)
    with γ = 0.4, and θ_i = 10000^{−2i/d}."""
    width = q.shape[-1]
    q, k = (rows[:, 0::2] + 1j * rows[:, 1::2] for rows in (q, k))
    i = np.arange(width // 2)
    zeta, theta = (i / (width / 2) + 0.4) / 1.4, 10000.0 ** (-2 * i / width)
    scores = np.zeros((len(q), len(k)))
    for n, m in np.ndindex(*scores.shape):
        if n >= m:
            fade = np.exp(1j * theta * (n - m)) * zeta ** ((n - m) / XPOS_BASE)
            scores[n, m] = (q[n] * k[m].conj() * fade).real.sum()
    return paper.softmax(scores / math.sqrt(width), allowed) @ v


def yarn_frequencies(width, factor, length, base=10000.0, by_turns=False):
    """2309.00071, section 3.2: h(θ_d) = (1 − γ) θ_d / s + γ θ_d, γ 0 below α = 1 turns within L, 1 above β = 32, between
    them linear in the turns. The authors' code (LlamaYaRNScaledRotaryEmbedding) has it linear in d, from the largest
    integer at which a pair turns β times to the smallest at which it turns α times."""
    theta = np.array([base ** (-2 * d / width) for d in range(width // 2)])
    if by_turns:
        gamma = [min(max((length * t / (2 * math.pi) - 1) / 31, 0.0), 1.0) for t in theta]
    else:
        low, high = (width * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base)) for turns in (32, 1))
        low, high = max(math.floor(low), 0), min(math.ceil(high), width - 1)
        gamma = [1 - min(max((d - low) / (high - low), 0.0), 1.0) for d in range(width // 2)]
    return np.array([(1 - g) * t / factor + g * t for g, t in zip(gamma, theta)])


def turned_scores(q, k, theta):
    """Re Σ_d q_d k_d* e^{iθ_d(n−m)}, pairs being neighbouring channels."""
    q, k = (rows[:, 0::2] + 1j * rows[:, 1::2] for rows in (q, k))
    apart = np.arange(len(q))[:, None] - np.arange(len(k))[None, :]
    return np.einsum("nd,md,nmd->nm", q, k.conj(), np.exp(1j * apart[..., None] * theta)).real


def yarn(h, q, k, v, allowed, w, by_turns=False):
    """softmax(qᵀk / (t sqrt(d))) with sqrt(1 / t) = 0.1 ln(s) + 1: 2309.00071, equations 21 and 22."""
    theta = yarn_frequencies(q.shape[1], YARN_FACTOR, YARN_LENGTH, by_turns=by_turns)
    temperature = (0.1 * math.log(YARN_FACTOR) + 1) ** -2
    return paper.softmax(turned_scores(q, k, theta) / (temperature * math.sqrt(q.shape[1])), allowed) @ v


def yarn_by_turns(h, q, k, v, allowed, w):
    return yarn(h, q, k, v, allowed, w, by_turns=True)


def rotary_partial(h, q, k, v, allowed, w):
    """GPT-NeoX (2204.06745): the first half of the channels turns, θ_d = 10000^{−2d/(D/2)}; the others do not."""
    half = q.shape[1] // 2
    theta = 10000.0 ** (-2 * np.arange(half // 2) / half)
    scores = turned_scores(q[:, :half], k[:, :half], theta) + q[:, half:] @ k[:, half:].T
    return paper.softmax(scores / math.sqrt(q.shape[1]), allowed) @ v


def rotary_ntk(h, q, k, v, allowed, w):
    """2309.00071, section 3.1: b' = b s^{D/(D−2)}, here s = 8."""
    width = q.shape[1]
    theta = (10000.0 * 8 ** (width / (width - 2))) ** (-2 * np.arange(width // 2) / width)
    return paper.softmax(turned_scores(q, k, theta) / math.sqrt(width), allowed) @ v


def cope(h, q, k, v, allowed, w):
    """2405.18719, equations 3 to 5: g_ij = σ(q_i k_j), p_ij = Σ_{k=j}^{i} g_ik, at most p_max, and
    a_ij = softmax(q_iᵀ (k_j + e[p_ij])), e[p] = (p − ⌊p⌋) e[⌈p⌉] + (1 − p + ⌊p⌋) e[⌊p⌋]; both products over sqrt(d) as in
    the authors' code."""
    dim, table, scores = q.shape[-1], w["table"], np.zeros((len(q), len(k)))
    for i, j in np.ndindex(*scores.shape):
        if j <= i:
            p = sum(paper.sigmoid(q[i] @ k[n] / math.sqrt(dim)) for n in range(j, i + 1))
            p = min(p, len(table) - 1)
            e = (p - math.floor(p)) * table[math.ceil(p)] + (1 - p + math.floor(p)) * table[math.floor(p)]
            scores[i, j] = q[i] @ (k[j] + e)
    return paper.softmax(scores / math.sqrt(dim), allowed) @ v


def scaled_sinusoidal(x, at, w):
    """x_i = prenet(phoneme_i) + α PE(i): 1809.08895, section 3.2."""
    return x + w["alpha"][0] * paper.sinusoidal(at, D_MODEL)


def randomized(x, drawn, w):
    """RPE(j, ·) := PE(i_j, ·) with I = {i_1 < … < i_n} a subset of {1 … L} drawn without replacement: 2305.16843.
    (Ours counts from 0.)"""
    return x + paper.sinusoidal(drawn, D_MODEL)


T5_BUCKETS, T5_MOST, FIRE_L, XPOS_BASE = 8, 5, 2.5, 3.0  # so that five tokens reach all there is
YARN_FACTOR, YARN_LENGTH = 4.0, 120  # of two pairs, one stays, or nearly, and one is slowed down
EMBEDDED = {"sinusoidal": sinusoidal, "learned": learned, "scaled_sinusoidal": scaled_sinusoidal}
IN_ATTENTION = {
    "rotary": rotary,
    "rotary partial": rotary_partial,
    "rotary ntk": rotary_ntk,
    "yarn": yarn,
    "yarn by turns": yarn_by_turns,
    "cope": cope,
    "cope few": cope,
    "xpos": xpos,
    "alibi": alibi,
    "t5": biased(t5_bias),
    "kerple": biased(kerple_log_bias),
    "kerple power": biased(kerple_power_bias),
    "fire": biased(fire_bias),
    "shaw": shaw,
    "transformer_xl": transformer_xl,
}
SPECS = {
    "shaw": {"name": "shaw", "clip": CLIP},
    "t5": {"name": "t5", "buckets": T5_BUCKETS, "max_distance": T5_MOST},
    "kerple power": {"name": "kerple", "kernel": "power"},
    "fire": {"name": "fire", "threshold": FIRE_L},
    "xpos": {"name": "xpos", "scale_base": XPOS_BASE},
    "rotary partial": {"name": "rotary", "fraction": 0.5},
    "rotary ntk": {"name": "rotary", "ntk_factor": 8.0},
    "yarn": {"name": "yarn", "factor": YARN_FACTOR, "trained_length": YARN_LENGTH},
    "yarn by turns": {"name": "yarn", "factor": YARN_FACTOR, "trained_length": YARN_LENGTH, "by_turns": True},
    "cope few": {"name": "cope", "positions": 3},  # so that most counts are cut off
}
REFERENCES = {
    **EMBEDDED,
    **{name: look for name, look in IN_ATTENTION.items() if " " not in name},  # with their default options
    "randomized": randomized,
    "nope_hybrid": rotary,
    "none": "composition",
    "chain": "composition",
}
CAUSAL = ("xpos", "cope", "cope few")
WHERE = [(name, site) for name in IN_ATTENTION for site in SITES if name not in CAUSAL or site.causal]


@pytest.mark.parametrize("name", EMBEDDED)
@pytest.mark.parametrize("at", [range(5), [3, 4, 7], [9]], ids=str)
def test_embedded_encoding_is_the_papers(build, precision, rng, name, at):
    encoding, w = build("position", name, **GIVEN, site=ENCODER)
    x = rng.normal(size=(2, len(at), D_MODEL))
    ours = encoding.embed(precision.tensor(x), precision.tensor(np.array(at)[None]))
    precision.same(ours, EMBEDDED[name](x, np.array(at), w))
    assert encoding.uses() == {"embed"}


@pytest.mark.parametrize("name, site", WHERE, ids=str)
def test_encoding_in_an_attention_is_the_papers(build, precision, rng, name, site):
    attention, w = build("attention", "multihead", **GIVEN, dropout=0.0, site=site)
    encoding, tables = build("position", SPECS.get(name, name), **GIVEN, site=site)
    x, x_valid, source, source_valid = sentences(rng, site)
    ours = attend(attention, precision, site, x, x_valid, source, source_valid, encoding)
    allowed = paper.visible(source_valid, LENGTH, site.causal)
    look = functools.partial(IN_ATTENTION[name], w=tables | {"causal": site.causal})
    precision.same(ours, paper.multi_head_attention(x, source, w, HEADS, allowed, look=look))
    without = paper.multi_head_attention(x, source, w, HEADS, allowed)
    assert np.abs(ours.numpy() - without).max() > 1e-2


@pytest.mark.parametrize("longest", [5, 6, 500])
def test_randomized_is_the_other_encoding_at_positions_of_a_longer_range(build, precision, rng, longest):
    spec = {"name": "randomized", "encoding": "sinusoidal", "longest": longest}
    encoding, w = build("position", spec, **GIVEN, site=ENCODER)
    encoding.train()
    x = rng.normal(size=(2, 5, D_MODEL))
    drawn = encoding.remap(positions(5), lambda: rng)
    at = drawn.numpy()[0]
    assert len(set(at)) == 5 and set(at) <= set(range(longest)) and list(at) == sorted(at)
    precision.same(encoding.embed(precision.tensor(x), drawn), randomized(x, at, w))


@pytest.mark.parametrize("every, layers", [(4, (3, 7)), (2, (1, 3, 5, 7))])
def test_nope_hybrid_has_no_positions_in_every_nth_layer(build, precision, rng, every, layers):
    """Llama 4's configuration: layers i from 0 with (i + 1) % 4 == 0 have none; 2501.18795 has one in four as well."""
    x, valid, _, _ = sentences(rng, DECODER)
    attention, w = build("attention", "multihead", **GIVEN, dropout=0.0, site=DECODER)
    allowed = paper.visible(valid, LENGTH, True)
    for layer in range(8):
        spec = {"name": "nope_hybrid", "encoding": "rotary", "every": every}
        encoding, _ = build("position", spec, **GIVEN, site=replace(DECODER, layer=layer))
        ours = attend(attention, precision, DECODER, x, valid, x, valid, encoding)
        look = None if layer in layers else functools.partial(rotary, w={})
        precision.same(ours, paper.multi_head_attention(x, x, w, HEADS, allowed, look=look))


@pytest.mark.parametrize("by_turns", [False, True])
def test_yarn_keeps_the_fastest_pair_and_slows_the_slowest(build, precision, by_turns):
    """Of Llama 2's heads of 128 channels and 4,096 tokens, s = 16: by the authors' ranges, pairs 0 to 20 stay and those
    from 46 on are slowed sixteen times."""
    spec = {"name": "yarn", "factor": 16.0, "trained_length": 4096, "by_turns": by_turns}
    encoding, _ = build("position", spec, head_dim=128, max_length=65536)
    theta = 10000.0 ** (-2 * np.arange(64) / 128)
    ratio = encoding.frequency.numpy() / theta
    np.testing.assert_allclose(encoding.frequency.numpy(), yarn_frequencies(128, 16.0, 4096, by_turns=by_turns))
    np.testing.assert_allclose(ratio[:21], 1.0)
    np.testing.assert_allclose(ratio[46:], 1 / 16)
    assert (np.diff(ratio[21:46]) < 0).all() or by_turns
    assert float(encoding.stretch) == pytest.approx(0.1 * math.log(16) + 1)


def test_none_leaves_attention_as_it_is(build, precision, rng):
    attention, w = build("attention", "multihead", **GIVEN, dropout=0.0, site=ENCODER)
    encoding, _ = build("position", "none", **GIVEN, site=ENCODER)
    x, valid, _, _ = sentences(rng, ENCODER)
    embedded = encoding.embed(precision.tensor(x), positions(LENGTH))
    ours = attend(attention, precision, ENCODER, embedded.numpy(), valid, embedded.numpy(), valid, encoding)
    precision.same(ours, paper.multi_head_attention(x, x, w, HEADS, paper.visible(valid, LENGTH, False)))


def test_chain_is_its_parts_in_turn(build, precision, rng):
    """Sinusoidal on the embedding, then rotary, ALiBi and Shaw in the attention."""
    parts = ["sinusoidal", "rotary", "alibi", {"name": "shaw", "clip": CLIP}]
    attention, w = build("attention", "multihead", **GIVEN, dropout=0.0, site=DECODER)
    encoding, tables = build("position", {"name": "chain", "parts": parts}, **GIVEN, site=DECODER)
    x, valid, _, _ = sentences(rng, DECODER)
    embedded = encoding.embed(precision.tensor(x), positions(LENGTH))
    here = np.arange(LENGTH)
    precision.same(embedded, x + paper.sinusoidal(here, D_MODEL))
    ours = attend(attention, precision, DECODER, embedded.numpy(), valid, embedded.numpy(), valid, encoding)
    key_table, value_table = (tables[f"parts.3.{name}_table"] for name in ("key", "value"))
    bias = paper.alibi_bias(paper.alibi_slopes(HEADS), here, here)

    def look(h, q, k, v, allowed):
        """Rotated q and k; Shaw's a_ij on rotated q, whose sum with ALiBi's bias is taken before the softmax."""
        q, k = (np.stack([paper.rotary(row, m) for m, row in enumerate(rows)]) for rows in (q, k))
        index = np.clip(here[None, :] - here[:, None], -CLIP, CLIP) + CLIP
        scores = (q @ k.T + np.einsum("id,ijd->ij", q, key_table[index])) / np.sqrt(HEAD_DIM) + bias[h]
        alpha = paper.softmax(scores, allowed)
        return alpha @ v + np.einsum("ij,ijd->id", alpha, value_table[index])

    embedded = x + paper.sinusoidal(here, D_MODEL)
    allowed = paper.visible(valid, LENGTH, True)
    precision.same(ours, paper.multi_head_attention(embedded, embedded, w, HEADS, allowed, look=look))


def test_shaw_without_its_term_on_the_values(build, precision, rng):
    attention, w = build("attention", "multihead", **GIVEN, dropout=0.0, site=ENCODER)
    encoding, tables = build("position", {"name": "shaw", "clip": CLIP, "with_values": False}, **GIVEN, site=ENCODER)
    assert set(tables) == {"key_table"} and tables["key_table"].shape == (2 * CLIP + 1, HEAD_DIM)
    x, valid, _, _ = sentences(rng, ENCODER)
    ours = attend(attention, precision, ENCODER, x, valid, x, valid, encoding)
    look = functools.partial(shaw, w=tables)
    precision.same(ours, paper.multi_head_attention(x, x, w, HEADS, paper.visible(valid, LENGTH, False), look=look))


# ------------------------------------------------------------------------------------------------------ known facts


def encode(build, precision, width, count, base=10000.0):
    """PE(0), …, PE(count − 1) by our component: what it adds to zeros."""
    encoding, _ = build("position", {"name": "sinusoidal", "base": base}, d_model=width)
    return encoding.embed(precision.tensor(np.zeros((1, count, width))), positions(count)).numpy()[0]


def test_sinusoidal_worked_example(build, precision):
    rows = [
        (0, 1, 0, 1),
        (0.84147, 0.54030, 0.09983, 0.99500),
        (0.90930, -0.41615, 0.19867, 0.98007),
        (0.14112, -0.98999, 0.29552, 0.95534),
    ]
    np.testing.assert_allclose(encode(build, precision, 4, 4, base=100.0), rows, atol=6e-6)


@pytest.mark.parametrize("k", [1, 5, -3])
def test_sinusoidal_shift_is_a_rotation(build, precision, k):
    """1706.03762, section 3.5: PE(p + k) is a linear function of PE(p). Of each pair it is the rotation by k ω_i."""
    width, table = 8, encode(build, precision, 8, 20)
    p = np.arange(5, 12)
    for pair in range(width // 2):
        angle = k / 10000.0 ** (2 * pair / width)
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        columns = slice(2 * pair, 2 * pair + 2)
        precision.same(table[p + k][:, columns], table[p][:, columns] @ turn.T)


def test_sinusoidal_products_depend_on_the_difference_and_decay(build, precision):
    table = encode(build, precision, 64, 40)
    products = table @ table.T
    for d in range(40):
        diagonal = np.diagonal(products, d)
        np.testing.assert_allclose(diagonal, diagonal[0], rtol=1e-4, atol=precision.rtol)
    assert products[0, 0] == pytest.approx(32)
    assert (np.diff(products[0, :6]) < 0).all()  # it decays with ripples: strictly at first, then on average
    assert (np.diff(products[0].reshape(4, 10).mean(1)) < 0).all()


@pytest.mark.parametrize("shift", [1, 9])
def test_rotary_products_depend_on_the_difference_only(build, precision, rng, shift):
    """2104.09864, equation 16: ⟨R_m q, R_n k⟩ = qᵀ R_{n−m} k, and rotations keep lengths."""
    encoding, _ = build("position", "rotary", head_dim=8)
    q, k = (precision.tensor(np.repeat(rng.normal(size=(1, 1, 1, 8)), 6, axis=2)) for _ in range(2))
    here, later = positions(6), positions(6) + shift
    products = [encoding.query(q, at).numpy()[0, 0] @ encoding.key(k, at).numpy()[0, 0].T for at in (here, later)]
    np.testing.assert_allclose(products[0], products[1], rtol=1e-4, atol=10 * precision.rtol)
    for d in range(-5, 6):
        diagonal = np.diagonal(products[0], d)
        np.testing.assert_allclose(diagonal, diagonal[0], rtol=1e-4, atol=10 * precision.rtol)
    assert len(np.unique(np.round(products[0][0], 3))) > 1
    precision.same(np.linalg.norm(encoding.query(q, later).numpy(), axis=-1), np.linalg.norm(q.numpy(), axis=-1))


@pytest.mark.parametrize("base", [10000.0, 100.0])
def test_rotary_vector_is_equation_34(build, precision, rng, base):
    encoding, _ = build("position", {"name": "rotary", "base": base}, head_dim=6)
    x = rng.normal(size=(2, 3, 4, 6))
    at = np.array([0, 2, 5, 11])
    expected = np.array(
        [[[paper.rotary(x[b, h, t], at[t], base) for t in range(4)] for h in range(3)] for b in range(2)]
    )
    for turn in (encoding.query, encoding.key):
        precision.same(turn(precision.tensor(x), precision.tensor(at[None])), expected)


def slopes(build, precision, heads):
    """The penalty of one step of distance, as our component puts it on the scores."""
    encoding, _ = build("position", "alibi", num_heads=heads, site=DECODER)
    bias = encoding.bias(precision.tensor(np.array([[1]])), precision.tensor(np.array([[0]]))).numpy()
    return -bias.astype(np.float64).reshape(heads)


def test_alibi_slopes_of_8_heads(build, precision):
    halves = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
    np.testing.assert_allclose(slopes(build, precision, 8), halves, rtol=1e-7)


def test_alibi_slopes_of_12_heads(build, precision):
    """The paper's sentence about n heads, 2^(−8h/n). (The authors' code takes another sequence where n is no power of
    2.)"""
    np.testing.assert_allclose(slopes(build, precision, 12), paper.alibi_slopes(12), rtol=1e-6)
    assert paper.alibi_slopes(12)[[0, -1]] == pytest.approx([2 ** (-2 / 3), 2**-8])


@pytest.mark.parametrize("heads", [1, 2, 4, 16, 32])
def test_alibi_slopes_of_a_power_of_two_are_the_papers(build, precision, heads):
    np.testing.assert_allclose(slopes(build, precision, heads), paper.alibi_slopes(heads), rtol=1e-7)


def test_alibi_is_the_papers_line_of_penalties(build, precision):
    """The figure of 2108.12409, section 3: 0, −m, −2m, … from the query backwards; the past of a causal side."""
    encoding, _ = build("position", "alibi", num_heads=8, site=DECODER)
    bias = encoding.bias(positions(5), positions(5)).numpy()
    row = np.broadcast_to(bias, (1, 8, 5, 5))[0, 0, 4]
    np.testing.assert_allclose(row, [-2, -1.5, -1, -0.5, 0], rtol=1e-7)


@pytest.mark.parametrize("site", [ENCODER, DECODER, CROSS], ids=str)
def test_shaw_is_blind_beyond_its_clip(build, precision, site):
    """1803.02155, section 3.2: distances beyond k share the vector of k."""
    encoding, w = build("position", {"name": "shaw", "clip": CLIP}, **GIVEN, site=site)
    q = precision.tensor(np.ones((1, 1, 1, HEAD_DIM)))
    k = precision.tensor(np.zeros((1, 1, 9, HEAD_DIM)))
    scores = encoding.scores(q, k, precision.tensor(np.array([[4]])), positions(9)).numpy()[0, 0, 0]
    totals = w["key_table"].sum(-1)
    precision.same(scores, totals[[0, 0, 0, 1, 2, 3, 4, 4, 4]])
