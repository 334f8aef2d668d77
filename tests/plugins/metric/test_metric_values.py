"""Metrics, by hand and against a naive recursion."""

import math
import random
from functools import cache
from itertools import pairwise

import pytest

from paddle_tfm import memory
from paddle_tfm.protocols import Likelihood, Prediction
from paddle_tfm_plugins.metric._edits import edit_distance
from paddle_tfm_plugins.metric.bits_per_character import BitsPerCharacter
from paddle_tfm_plugins.metric.exact_match import ExactMatch
from paddle_tfm_plugins.metric.perplexity import Perplexity
from paddle_tfm_plugins.metric.phoneme_error_rate import PhonemeErrorRate
from paddle_tfm_plugins.metric.token_accuracy import TokenAccuracy
from paddle_tfm_plugins.metric.token_error_rate import TokenErrorRate
from paddle_tfm_plugins.metric.word_error_rate import WordErrorRate

NONE = Likelihood(0.0, 0, 0)


def prediction(reference, hypothesis):
    return Prediction("", reference, hypothesis, tuple(reference.split()), tuple(hypothesis.split()))


def naive(a, b):
    @cache
    def distance(i, j):
        if i == 0 or j == 0:
            return i + j
        return min(distance(i - 1, j) + 1, distance(i, j - 1) + 1, distance(i - 1, j - 1) + (a[i - 1] != b[j - 1]))

    return distance(len(a), len(b))


@pytest.mark.parametrize("symbols", [1, 2, 4, 20])
def test_edit_distance_equals_the_recursion(symbols):
    draw = random.Random(symbols)
    for _ in range(400):
        a, b = ([str(draw.randrange(symbols)) for _ in range(draw.randrange(14))] for _ in range(2))
        assert edit_distance(a, b) == naive(a, b), (a, b)


def test_edit_distance_beyond_a_machine_word():
    draw = random.Random(0)
    for _ in range(5):
        a, b = ([draw.randrange(3) for _ in range(draw.randrange(100, 140))] for _ in range(2))
        assert edit_distance(a, b) == naive(a, b)


def test_the_memory_of_an_edit_distance_is_that_of_the_shorter_text(monkeypatch):
    monkeypatch.setattr(memory, "free", lambda: 1e6)
    monkeypatch.setattr(memory, "MUCH", 1e5)
    short, long = range(100), range(10_000)
    assert edit_distance(short, long) == edit_distance(long, short) == 9_900
    with pytest.raises(MemoryError, match=r"the edit distance of 10,000 and 10,000 items needs"):
        edit_distance(long, long)


def test_token_error_rate_sums_before_it_divides():
    pairs = [prediction("a b c d", "a c d e"), prediction("x", "y z")]  # 2 edits of 4, 2 edits of 1
    assert TokenErrorRate().compute(pairs, NONE) == 4 / 5
    assert TokenErrorRate().compute([prediction("a b", "a b")], NONE) == 0
    assert TokenErrorRate().compute([prediction("a b", "")], NONE) == 1
    assert TokenErrorRate().compute([prediction("a", "b c d")], NONE) == 3


@pytest.mark.parametrize("metric", [WordErrorRate, PhonemeErrorRate])
def test_word_and_phoneme_error_rate_equal_the_recursion(metric):
    draw = random.Random(3)
    texts = [" ".join(draw.choice("abcde") for _ in range(draw.randrange(1, 9))) for _ in range(60)]
    pairs = [Prediction("", *pair) for pair in pairwise(texts)]  # no pieces: texts are enough
    edits = sum(naive(pair.hypothesis.split(), pair.reference.split()) for pair in pairs)
    assert metric().compute(pairs, NONE) == edits / sum(len(pair.reference.split()) for pair in pairs)


def test_word_error_rate_of_whole_outputs_is_the_share_of_wrong_ones():
    pairs = [prediction("ɑ b", " ɑ  b "), prediction("ɑ b", "ɑb"), prediction("x", "y z"), prediction("", "")]
    assert WordErrorRate(per="line").compute(pairs, NONE) == 0.5
    assert WordErrorRate(per="line").compute([prediction("a b", "a b c d e")], NONE) == 1


def test_exact_match():
    pairs = [prediction("a b ", "a b"), prediction("a b", " a b\n"), prediction("a b", "a  b"), prediction("a", "A")]
    assert ExactMatch().compute(pairs, NONE) == 0.5


def test_token_accuracy():
    assert TokenAccuracy().compute([], Likelihood(9.0, 3, 4)) == 0.75


def test_perplexity():
    assert Perplexity().compute([], Likelihood(5 * math.log(7.0), 0, 5)) == pytest.approx(7.0, rel=1e-12)
    assert Perplexity().compute([], Likelihood(0.0, 5, 5)) == 1.0
    assert Perplexity().compute([], Likelihood(1e6, 0, 5)) == math.inf
    assert math.isnan(Perplexity().compute([], Likelihood(math.nan, 0, 5)))


@pytest.mark.parametrize(
    ("metric", "pairs", "text"),
    [
        (ExactMatch, [], "`predictions` must hold at least one"),
        (TokenErrorRate, [], "`predictions` must hold at least one"),
        (TokenErrorRate, [prediction("", "a")], "`predictions` must hold at least one piece of a reference"),
        (WordErrorRate, [prediction("", "a")], "`predictions` must hold at least one word of a reference"),
        (PhonemeErrorRate, [prediction("", "a")], "`predictions` must hold at least one phoneme of a reference"),
        (TokenAccuracy, [], "`likelihood.tokens` must be positive, but is 0"),
        (Perplexity, [], "`likelihood.tokens` must be positive, but is 0"),
    ],
)
def test_nothing_to_measure(metric, pairs, text):
    with pytest.raises(ValueError) as caught:
        metric().compute(pairs, NONE)
    assert str(caught.value) == text


def test_bits_per_character():
    """A fair coin a character is one bit; pieces do not matter; without characters there is nothing to say."""
    coin = Likelihood(10 * math.log(2), 0, 10, 10)
    assert BitsPerCharacter().compute([], coin) == pytest.approx(1.0)
    assert BitsPerCharacter().compute([], coin._replace(tokens=3)) == pytest.approx(1.0)
    assert BitsPerCharacter().compute([], coin._replace(characters=5)) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="characters` must be positive, but is 0"):
        BitsPerCharacter().compute([], NONE)
