"""Searches against brute force, over a language model that is a table."""

import itertools
import math

import numpy as np
import paddle
import pytest

from paddle_tfm.protocols import Decoding
from paddle_tfm_plugins.search.beam import Beam
from paddle_tfm_plugins.search.greedy import Greedy

BOS, EOS, WORDS = 0, 1, (2, 3, 4)


class Table(Decoding):
    """log p(next | sentence, all tokens so far), drawn once for each prefix; rows are prefixes."""

    bos, eos = BOS, EOS

    def __init__(self, limits, seed=0):
        self.limits, self.seed, self.calls = limits, seed, 0
        self.rows = [(sentence, ()) for sentence in range(len(limits))]

    def log_probs(self, sentence, prefix):
        rng = np.random.default_rng([self.seed, sentence, len(prefix), *prefix])
        logits = rng.normal(0, 2.0, 5)
        logits[BOS] = -1e9
        return logits - np.log(np.exp(logits).sum())

    def advance(self, tokens):
        self.calls += 1
        self.rows = [
            (sentence, prefix if token == BOS else (*prefix, token))
            for (sentence, prefix), token in zip(self.rows, tokens.tolist())
        ]
        return paddle.to_tensor(np.stack([self.log_probs(*row) for row in self.rows]), dtype="float32")

    def select(self, rows):
        self.rows = [self.rows[row] for row in rows.tolist()]


def brute_force(table, sentence, limit):
    """Every output up to the limit with its log-probability."""
    for length in range(limit + 1):
        for words in itertools.product(WORDS, repeat=length):
            total = sum(table.log_probs(sentence, words[:i])[word] for i, word in enumerate(words))
            yield list(words), total + table.log_probs(sentence, words)[EOS]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_finds_the_best_output(alpha, seed):
    """Wider than the number of prefixes, a beam is exhaustive."""
    limits = [3, 4, 2]
    search = Beam(size=200, alpha=alpha)
    found = search.run(Table(limits, seed))
    for sentence, limit in enumerate(limits):
        ranked = sorted(
            brute_force(Table(limits, seed), sentence, limit),
            key=lambda item: -item[1] / search.penalty(len(item[0]) + 1),
        )
        for hypothesis, (ids, score) in list(zip(found[sentence], ranked))[:5]:
            assert hypothesis.ids == ids
            assert hypothesis.score == pytest.approx(score, abs=1e-4)


def reference_beam(table, sentence, limit, size, alpha):
    """Beam search as the textbook says, one sentence, no early end: keep `size` of the best 2·size continuations."""
    beams, finished = [((), 0.0)], []
    for length in range(limit + 1):
        pool = []
        for prefix, score in beams:
            log_probs = table.log_probs(sentence, prefix)
            for token in (EOS, *WORDS):
                if length < limit or token == EOS:
                    pool.append((score + log_probs[token], prefix, token))
        pool.sort(key=lambda item: -item[0])
        beams = []
        for rank, (score, prefix, token) in enumerate(pool):
            if token == EOS and rank < size:
                finished.append((score / ((5 + len(prefix) + 1) / 6) ** alpha, list(prefix)))
            elif token != EOS and len(beams) < size:
                beams.append(((*prefix, token), score))
    finished.sort(key=lambda item: -item[0])
    return [ids for _, ids in finished[:size]]


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_a_narrow_beam_is_the_textbooks(size, seed):
    limits = [5, 3, 4, 6]
    found = Beam(size=size, alpha=0.6).run(Table(limits, seed))
    for sentence, limit in enumerate(limits):
        assert [h.ids for h in found[sentence]] == reference_beam(Table(limits, seed), sentence, limit, size, 0.6)


@pytest.mark.parametrize("seed", range(6))
def test_greedy_takes_the_most_probable_token(seed):
    limits = [4, 6, 2, 5]
    table = Table(limits, seed)
    found = Greedy().run(table)
    for sentence, limit in enumerate(limits):
        prefix = ()
        while len(prefix) < limit:
            token = int(np.argmax(Table(limits, seed).log_probs(sentence, prefix)))
            if token == EOS:
                break
            prefix = (*prefix, token)
        assert found[sentence][0].ids == list(prefix)
    assert table.calls <= max(limits)


@pytest.mark.parametrize("search", [Greedy(), Beam(size=3)])
def test_sentences_do_not_influence_each_other(search):
    limits = [4, 6, 2, 5]
    together = search.run(Table(limits))

    class Alone(Table):
        def __init__(self, sentence):
            super().__init__([limits[sentence]])
            self.rows = [(sentence, ())]

    for sentence in range(len(limits)):
        (alone,) = search.run(Alone(sentence))
        assert [h.ids for h in alone] == [h.ids for h in together[sentence]]


def test_a_model_that_never_ends_is_ended():
    class Endless(Table):
        def log_probs(self, sentence, prefix):
            return np.array([-1e9, -50.0, -0.1, -3.0, -3.0])

    for search in (Greedy(), Beam(size=2)):
        found = search.run(Endless([7, 3]))
        assert [len(hypotheses[0].ids) for hypotheses in found] == [7, 3]


def test_the_penalty_favours_longer_outputs():
    def length(alpha):
        return np.mean([len(h[0].ids) for seed in range(20) for h in Beam(5, alpha).run(Table([6], seed))])

    assert length(2.0) > length(0.0)


@pytest.mark.parametrize("bad", [{"size": 0}, {"alpha": -1.0}])
def test_bad_options_are_refused(bad):
    with pytest.raises(ValueError, match="but is"):
        Beam(**bad)


def test_the_penalty_is_that_of_the_paper():
    assert Beam(alpha=0.6).penalty(1) == 1.0
    assert Beam(alpha=0.6).penalty(7) == pytest.approx(math.pow(2.0, 0.6))
