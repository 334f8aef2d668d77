"""Random segmentations: the distributions of the papers, counted out by hand."""

import math
import random
from collections import Counter
from functools import cache
from itertools import product

import numpy as np
import pytest
import sentencepiece

from paddle_tfm import create_registry, load_recipe
from paddle_tfm.data.codec import Codec
from paddle_tfm.data.vocabulary import UNKNOWN
from paddle_tfm.protocols import Example
from paddle_tfm.recipe.plan import plan_run
from paddle_tfm_plugins.tokenizer._segmentation import lattice, merge, walk
from paddle_tfm_plugins.tokenizer.sentencepiece import SentencePiece

SCORES = {"a": -2.0, "b": -2.5, "c": -3.0, "ab": -3.2, "bc": -2.8, "abc": -4.0, "ca": -3.5, "cab": -4.5}
MERGES = {"ab": -1.0, "bc": -2.0, "ca": -3.0, "abc": -4.0, "cab": -5.0, "abca": -6.0}
ODD = ["語 x👍y <0x41> <unk>", "aаα 们们 \0", "", "   ", "half \ud800"]


def texts(count=600):
    draw = random.Random(1)
    parts = ["".join(draw.choice("abdeilmnorstuäöüé") for _ in range(draw.randint(1, 4))) for _ in range(120)]
    for _ in range(count):
        words = ["".join(draw.choices(parts, k=draw.randint(1, 3))) for _ in range(8)]
        yield " ".join(words) + draw.choice(["", "。", " 2024!", " 我们见面，好吗？"])


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Learned once for each model, loaded with other options."""
    folders = {}

    def get(model, sampling=None, byte_fallback=True):
        key = model, byte_fallback
        if key not in folders:
            folders[key] = tmp_path_factory.mktemp(model)
            teacher = SentencePiece(500, model, byte_fallback)
            teacher.fit(texts())
            teacher.save(folders[key])
        tokenizer = SentencePiece(500, model, byte_fallback, sampling=sampling)
        tokenizer.load(folders[key])
        return tokenizer

    return get


def distance(results: Counter, expected: dict) -> float:
    """Total variation between relative frequencies and probabilities."""
    count = results.total()
    return sum(abs(results[key] / count - expected.get(key, 0.0)) for key in {*results, *expected}) / 2


def all_cuts(word):
    for borders in product((False, True), repeat=len(word) - 1):
        pieces = [word[0]]
        for border, character in zip(borders, word[1:]):
            pieces = [*pieces, character] if border else [*pieces[:-1], pieces[-1] + character]
        yield tuple(pieces)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0, 5.0])
def test_subword_regularization_over_all_segmentations(alpha):
    """P ∝ exp(α Σ log p), every segmentation written out."""
    word = "abcabca"
    cuts = [cut for cut in all_cuts(word) if all(piece in SCORES for piece in cut)]
    weights = [math.exp(alpha * sum(SCORES[piece] for piece in cut)) for cut in cuts]
    expected = {cut: weight / sum(weights) for cut, weight in zip(cuts, weights)}
    assert len(cuts) > 15
    draw = random.Random(2).random
    ends = lattice(word, SCORES, 3, alpha)
    assert distance(Counter(tuple(walk(word, ends, draw)) for _ in range(40_000)), expected) < 0.015


@cache
def dropout_outcomes(pieces, dropout):
    """The paper's procedure with all 2^n choices of which of the n possible merges a step leaves out."""
    possible = [i for i in range(len(pieces) - 1) if pieces[i] + pieces[i + 1] in MERGES]
    outcomes = Counter()
    for stays in product((False, True), repeat=len(possible)):
        weight = math.prod(1 - dropout if stay else dropout for stay in stays)
        left = [i for i, stay in zip(possible, stays) if stay]
        if not weight:
            continue
        if not left:
            outcomes[pieces] += weight
            continue
        best = max(left, key=lambda i: (MERGES[pieces[i] + pieces[i + 1]], -i))
        merged = (*pieces[:best], pieces[best] + pieces[best + 1], *pieces[best + 2 :])
        for outcome, further in dropout_outcomes(merged, dropout).items():
            outcomes[outcome] += weight * further
    return outcomes


@pytest.mark.parametrize("dropout", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_bpe_dropout_over_all_choices(dropout):
    word = "abcabca"
    draw = random.Random(2).random
    expected = dropout_outcomes(tuple(word), dropout)
    assert sum(expected.values()) == pytest.approx(1)
    assert distance(Counter(tuple(merge(word, MERGES, dropout, draw)) for _ in range(40_000)), expected) < 0.015


def some_words():
    return sorted({word for line in [*texts(200), *ODD] for word in line.split()})


@pytest.mark.parametrize("byte_fallback", [True, False])
def test_bpe_without_dropout_is_the_librarys_own(fitted, byte_fallback):
    """And with dropout 1 nothing is merged."""
    rng = np.random.default_rng(0)
    none, all_left_out = (fitted("bpe", p, byte_fallback) for p in (0.0, 1.0))
    characters = set(none.pieces())
    for word in some_words():
        assert none.sample(word, rng) == none.tokenize(word)
        if set(word) <= characters:
            assert all_left_out.sample(word, rng) == ["▁", *word]


@pytest.mark.parametrize("byte_fallback", [True, False])
def test_unigram_with_a_large_alpha_is_the_librarys_best(fitted, byte_fallback):
    """Up to ties, such as 0+00 and 00+0."""
    rng = np.random.default_rng(0)
    tokenizer = fitted("unigram", 1e6, byte_fallback)
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer._proto)
    for word in some_words():
        results, best = tokenizer.sample(word, rng), tokenizer.tokenize(word)
        if results != best:
            ours, theirs = (
                sum(processor.get_score(processor.piece_to_id(p)) for p in each) for each in (results, best)
            )
            assert sorted(results) == sorted(best) or ours == pytest.approx(theirs, abs=1e-4), (results, best)


def test_the_codec_draws_both_sides():
    lines = list(texts())
    examples = [Example(source, target) for source, target in zip(lines[:300], lines[300:])]
    overrides = ["tokenizer={name: sentencepiece, size: 500, sampling: 0.2}"]
    codec = Codec.learn(plan_run(load_recipe("base", overrides).runs()[0], create_registry()), examples)
    plain = codec.encode_all(examples)
    assert plain.sampling
    drawn = [plain.sample(i, np.random.default_rng(i)) for i in range(50)]
    for side in ("source", "target"):
        assert sum(getattr(d, side) != getattr(plain[i], side) for i, d in enumerate(drawn)) > 40
    assert all(codec.text(codec.pieces(d.target[:-1])) == d.example.target for d in drawn)
    assert all(UNKNOWN not in (*d.source, *d.target) for d in drawn)
