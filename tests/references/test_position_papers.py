"""Every position encoding against its paper's equations, inside an attention, and the facts known about each."""

import functools
import math
from dataclasses import replace

import numpy as np
import paper_equations as paper
import position_numpy as twins
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
    with_known,
)

GIVEN = {"d_model": D_MODEL, "num_heads": HEADS, "head_dim": HEAD_DIM, "max_length": MAX_LENGTH}
CLIP = 2


EMBEDDED = {name: getattr(twins, name) for name in ("sinusoidal", "learned", "scaled_sinusoidal")}
YARN = {
    "name": "yarn",
    "factor": 4.0,
    "trained_length": 120,
}  # of two pairs, one stays, or nearly, and one is slowed down
IN_ATTENTION = {
    "rotary": {"name": "rotary"},
    "rotary partial": {"name": "rotary", "fraction": 0.5},
    "rotary ntk": {"name": "rotary", "ntk_factor": 8.0},
    "yarn": YARN,
    "yarn by turns": {**YARN, "by_turns": True},
    "cope": {"name": "cope"},
    "cope few": {"name": "cope", "positions": 3},  # so that most counts are cut off
    "xpos": {"name": "xpos", "scale_base": 3.0},
    "alibi": {"name": "alibi"},
    "t5": {"name": "t5", "buckets": 8, "max_distance": 5},  # so that five tokens reach all there is
    "kerple": {"name": "kerple"},
    "kerple power": {"name": "kerple", "kernel": "power"},
    "fire": {"name": "fire", "threshold": 2.5},
    "shaw": {"name": "shaw", "clip": CLIP},
    "transformer_xl": {"name": "transformer_xl"},
}
CAUSAL = ("xpos", "cope", "cope few")
WHERE = [(name, site) for name in IN_ATTENTION for site in SITES if name not in CAUSAL or site.causal]


def twin_of(spec, site, w):
    """The twin of an encoding under its options, as far as it takes them, w too."""
    return with_known(getattr(twins, spec["name"]), {**GIVEN, "causal": site.causal, "site": site, "w": w, **spec})


@pytest.mark.parametrize("name", EMBEDDED)
@pytest.mark.parametrize("at", [range(5), [3, 4, 7], [9]], ids=str)
def test_embedded_encoding_is_the_papers(build, precision, rng, name, at):
    encoding, w = build("position", name, **GIVEN, site=ENCODER)
    x = rng.normal(size=(2, len(at), D_MODEL))
    ours = encoding.embed(precision.tensor(x), precision.tensor(np.array(at)[None]))
    precision.same(ours, twin_of({"name": name}, ENCODER, w)(x, np.array(at)))
    assert encoding.uses() == {"embed"}


@pytest.mark.parametrize("name, site", WHERE, ids=str)
def test_encoding_in_an_attention_is_the_papers(build, precision, rng, name, site):
    attention, w = build("attention", "multihead", **GIVEN, dropout=0.0, site=site)
    encoding, tables = build("position", IN_ATTENTION[name], **GIVEN, site=site)
    x, x_valid, source, source_valid = sentences(rng, site)
    ours = attend(attention, precision, site, x, x_valid, source, source_valid, encoding)
    allowed = paper.visible(source_valid, LENGTH, site.causal)
    look = twin_of(IN_ATTENTION[name], site, tables)
    precision.same(ours, paper.multi_head_attention(x, source, w, HEADS, allowed, look=look))
    without = paper.multi_head_attention(x, source, w, HEADS, allowed)
    assert np.abs(ours.numpy() - without).max() > 1e-2


@pytest.mark.parametrize("longest", [5, 6, 500])
def test_randomized_is_the_other_encoding_at_positions_of_a_longer_range(build, precision, rng, longest):
    spec = {"name": "randomized", "encoding": "sinusoidal", "longest": longest}
    encoding, _ = build("position", spec, **GIVEN, site=ENCODER)
    encoding.train()
    x = rng.normal(size=(2, 5, D_MODEL))
    drawn = encoding.remap(positions(5), lambda: rng)
    at = drawn.numpy()[0]
    assert len(set(at)) == 5 and set(at) <= set(range(longest)) and list(at) == sorted(at)
    precision.same(encoding.embed(precision.tensor(x), drawn), twins.sinusoidal(x, at))


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
        look = None if layer in layers else twins.rotary
        precision.same(ours, paper.multi_head_attention(x, x, w, HEADS, allowed, look=look))


@pytest.mark.parametrize("by_turns", [False, True])
def test_yarn_keeps_the_fastest_pair_and_slows_the_slowest(build, precision, by_turns):
    """Of Llama 2's heads of 128 channels and 4,096 tokens, s = 16: by the authors' ranges, pairs 0 to 20 stay and those
    from 46 on are slowed sixteen times."""
    spec = {"name": "yarn", "factor": 16.0, "trained_length": 4096, "by_turns": by_turns}
    encoding, _ = build("position", spec, head_dim=128, max_length=65536)
    theta = 10000.0 ** (-2 * np.arange(64) / 128)
    ratio = encoding.frequency.numpy() / theta
    np.testing.assert_allclose(encoding.frequency.numpy(), twins.yarn_frequencies(128, 16.0, 4096, by_turns=by_turns))
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
    look = functools.partial(twins.shaw, w=tables, clip=CLIP)
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
