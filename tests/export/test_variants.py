"""Every variant that CTranslate2 can hold writes there what it writes here: pairs of kinds, in small random models."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest

from paddle_tfm.data.vocabulary import EOS
from paddle_tfm.export.ctranslate2.decoder import ExportedDecoder
from paddle_tfm.export.ctranslate2.spec import load_ctranslate2
from paddle_tfm.export.proof import prove
from paddle_tfm.search.decoding import decode_all
from paddle_tfm.train.evaluate import log_probs

pytestmark = pytest.mark.reliability

LOCAL = "{self: {name: local, window: 2}, cross: multihead}"
INTERLEAVED = "{self: {name: interleaved, window: 2}, cross: multihead}"
TABLES = ("alibi", "kerple", "t5")  # a bias by distance, which CTranslate2 computes once for all layers
FACTORS = {
    "attention": (
        "multihead", "{name: grouped_query, kv_heads: 2}", "{name: grouped_query, kv_heads: 1}", LOCAL, INTERLEAVED,
        "{self: cosine, cross: multihead}", "{self: qk_norm, cross: multihead}",
        "{self: {name: qk_norm, norm: layer}, cross: multihead}", "full_width_heads", "single_head", "{name: lora, rank: 2}",
        "{name: multihead, bias: false}", "{name: multihead, head_dim: 12}",
    ),
    "position": (
        "sinusoidal", "learned", "none", "scaled_sinusoidal", "shaw", "{name: shaw, clip: 3, with_values: false}", "t5",
        "{name: t5, buckets: 8, max_distance: 12}", "rotary", "{name: rotary, fraction: 0.5}",
        "{name: nope_hybrid, encoding: rotary, every: 2}", "alibi", "kerple",
        "{name: randomized, encoding: sinusoidal, longest: 256}", "{name: randomized, encoding: t5, longest: 256}",
        "{name: chain, parts: [sinusoidal, learned]}", "{name: chain, parts: [t5, rotary]}",
        "{name: chain, parts: [alibi, shaw]}",
    ),
    "norm": ("layer", "rms", "{name: layer, bias: false}", "{name: layer, eps: 1e-6}", "scale", "{self: rms, cross: layer}"),
    "placement": (
        "pre", "post", "sandwich", "peri", "layer_scale", "{encoder: pre, decoder: post}", "parallel",
        "{name: steps, before: n, after: da, embedding: n, top: n}", "{name: steps, embedding: nd, top: n}",
    ),
    "feed_forward": (
        "relu", "gelu", "swish", "{name: swish, beta: 1.702}", "swiglu", "geglu", "reglu", "{name: relu, bias: false}", "{name: swiglu, equal_parameters: true}",
    ),
    "head": ("linear", "tied", "{name: linear, bias: false}", "{name: tied, bias: true}"),
    "scale_embedding": ("true", "false"),
    "share_embeddings": ("false", "true"),
    "shape": ("both", "decoder"),
}  # fmt: skip


def possible(row: dict[str, str]) -> bool:
    """Whether such a model exists, and CTranslate2 has it."""
    decoder_only = row.get("shape", "decoder") == "decoder"
    if row.get("placement") == "parallel" and not decoder_only:
        return False
    attention, norm = row.get("attention", ""), row.get("norm", "")
    if attention == INTERLEAVED and any(name in row.get("position", "") for name in TABLES):
        return False
    if "qk_norm" in attention and (norm == "scale" or ("norm: layer" in attention and "eps" in norm)):
        return False  # CTranslate2 has one eps for all norms
    values = "shaw" in row.get("position", "") and "with_values: false" not in row["position"]
    if row.get("attention") == "single_head" and values:
        return False
    if "shape" in row and decoder_only:
        wide = row.get("placement", "").startswith("{") or "cross" in row.get("norm", "")
        return not wide and row.get("share_embeddings") != "true"
    return True


def pairwise() -> list[dict[str, str]]:
    """Rows in which every possible pair of values of two factors stands at least once."""
    names = list(FACTORS)
    pairs = {
        (a, x, b, y)
        for a, b in itertools.combinations(names, 2)
        for x in FACTORS[a]
        for y in FACTORS[b]
        if possible({a: x, b: y, **({"shape": "both"} if {a, b} == {"placement", "shape"} and y == "both" else {})})
    }
    rng, rows = np.random.default_rng(0), []
    while pairs:
        best, gain, candidates = {}, frozenset(), sorted(pairs)
        for _ in range(60):
            a, x, b, y = candidates[rng.integers(len(candidates))]
            row = {name: FACTORS[name][rng.integers(len(FACTORS[name]))] for name in names} | {a: x, b: y}
            row = row if possible(row) else row | {"shape": "both" if possible(row | {"shape": "both"}) else "decoder"}
            if possible(row):
                new = pairs & {(a, row[a], b, row[b]) for a, b in itertools.combinations(names, 2)}
                best, gain = (row, frozenset(new)) if len(new) > len(gain) else (best, gain)
        if not gain:
            break  # what is left stands in no possible model
        rows.append(best)
        pairs -= gain
    return rows


def overrides(row: dict[str, str]) -> list[str]:
    decoder_only = row["shape"] == "decoder"
    given = [f"model.{name}={value}" for name, value in row.items() if name != "shape"]
    if decoder_only and "cross: multihead" in row["attention"]:
        own = row["attention"].removeprefix("{self: ").removesuffix(", cross: multihead}")
        given[list(row).index("attention")] = f"model.attention={own}"
    given += ["vocabulary.shared=true"] * (row["share_embeddings"] == "true")
    decoder = ["model.encoder_layers=0", "evaluate.metrics=[perplexity]", "evaluate.best=perplexity"]
    return given + decoder * decoder_only


ROWS = pairwise()
HANDFUL = 6  # by default; the rest by `pytest -m conformance`
REST = (pytest.mark.conformance, pytest.mark.exhaustive)
rows = pytest.mark.parametrize(
    "row",
    [pytest.param(row, marks=() if i < HANDFUL else REST) for i, row in enumerate(ROWS)],
    ids=lambda row: "-".join(value for name, value in row.items() if not name.endswith("embedding")),
)


def test_the_pairs_are_many():
    """A mistake in `possible` would leave most of them out."""
    assert 120 < len(ROWS) < 400
    assert sum(row["shape"] == "decoder" for row in ROWS) > 20
    for name, values in FACTORS.items():
        assert {row[name] for row in ROWS} == set(values), name


@rows
def test_it_writes_what_ours_writes(make_random, write, codec, sentences, row):
    model = make_random(*overrides(row))
    held, folder = write(model)
    sentences = sentences[:10] if model.encoder is None else sentences  # our search takes these one by one
    proof = prove(model, codec, folder, held, sentences)
    assert proof.same + proof.ties == len(sentences) and proof.ties <= 1
    if model.encoder is not None and row["attention"] not in (LOCAL, INTERLEAVED):
        compare_log_probs(model, codec, folder, sentences)


def compare_log_probs(model, codec, folder, sentences):
    """The log-probability of each target under both. (CTranslate2's scoring knows no window.)"""
    pieces = codec.target_vocabulary.pieces
    translator = load_ctranslate2().Translator(str(folder), compute_type="float32")
    texts = [[[pieces[i] for i in side[:-1]] for side in (each.source, each.target)] for each in sentences]
    theirs = [sum(result.log_probs) for result in translator.score_batch(*zip(*texts))]
    ours = log_probs(model, sentences)
    np.testing.assert_allclose(theirs, ours, rtol=2e-5, atol=2e-4)


# --------------------------------------------------------------------------------------------------- the searches of it


@pytest.fixture
def both(make_random, write, codec, rules):
    """A decoder of each engine for one model."""
    model = make_random("model.position=rotary", "model.head=tied")
    held, folder = write(model)
    sides = codec.source_vocabulary, codec.target_vocabulary
    return partial(decode_all, model), ExportedDecoder(model, folder, rules.held, *sides, held.positions)


def ids(hypotheses):
    return [[each.ids for each in several] for several in hypotheses]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_ratio": 0.5, "max_extra": 1},
        {"min_length": 9, "max_length": 11},
        {"no_repeat_ngram": 1, "max_extra": 40},
    ],
)
@pytest.mark.parametrize("prefixes", [None, [[9], [7, 7, 7]] * 20])
def test_greedy_is_the_same_under_constraints_and_prefixes(both, components, sentences, options, prefixes):
    search = components.build("search", {"name": "greedy", **options}, "")
    ours, theirs = (decode(sentences, search, 200, None, prefixes) for decode in both)
    assert ids(ours) == ids(theirs)
    assert any(len(each) == 1 for each in ours) and max(len(each[0].ids) for each in ours) > 1
    np.testing.assert_allclose([each[0].score for each in theirs], [each[0].score for each in ours], atol=1e-3)


@pytest.mark.parametrize(("alpha", "longest"), [(1.0, 12), (1.4, 40)])
def test_a_beam_writes_what_ours_does_or_ends_before_it(both, components, sentences, alpha, longest):
    """Scores and order are those of our formula, what was cut is the same, and nothing else is better than ours."""
    spec = {"name": "beam", "size": 4, "alpha": alpha, "max_ratio": 0, "max_extra": longest}
    search = components.build("search", spec, "")
    ours, theirs = (decode(sentences, search) for decode in both)
    same = 0
    for own, other in zip(ours, theirs):
        scores = [each.score / search.penalty(len(each.ids) + 1) for each in other]
        assert 1 <= len(other) <= 4 and scores == sorted(scores, reverse=True)
        assert scores[0] <= own[0].score / search.penalty(len(own[0].ids) + 1) + 1e-4
        if any(len(each.ids) == longest for each in other):
            assert ids([own]) == ids([other])
        same += ids([own]) == ids([other])
    assert same >= len(sentences) * (0.95 if longest == 12 else 0.6)  # 40 and 25; with a patience of 1: 36 and 21


def test_texts_beyond_the_tables_are_left_to_our_search(make_random, write, codec, rules, components, sentences):
    model = make_random()
    held, folder = write(model)
    sides = codec.source_vocabulary, codec.target_vocabulary
    long = [each._replace(source=[*([5, 9, 6] * 400), EOS]) for each in sentences[:1]]
    search = components.build("search", {"name": "greedy", "max_ratio": 0.0}, "")
    mixed = [*sentences[:3], *long, *sentences[3:6]]
    theirs = ExportedDecoder(model, folder, rules.held, *sides, held.positions)(mixed, search)
    assert ids(theirs) == ids(decode_all(model, mixed, search))


@pytest.mark.parametrize("quantization", ["int8", "int16", "bfloat16"])
def test_fewer_bits_write_nearly_the_same(make_random, write, codec, rules, components, sentences, quantization):
    model = make_random("model.attention={self: cosine, cross: multihead}", "model.d_ff=64")
    held, folder = write(model, quantization)
    whole = write(model)[1]
    assert (folder / "model.bin").stat().st_size < 0.75 * (whole / "model.bin").stat().st_size
    sides = codec.source_vocabulary, codec.target_vocabulary
    search = components.build("search", {"name": "greedy", "max_ratio": 0.0, "max_extra": 1}, "")
    ours, theirs = (
        decode(sentences, search)
        for decode in (
            partial(decode_all, model),
            ExportedDecoder(model, folder, rules.held, *sides, held.positions, scores=False),
        )
    )
    assert np.mean([a == b for a, b in zip(ids(ours), ids(theirs))]) > 0.8
