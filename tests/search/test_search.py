"""Searches against the textbook's, over a language model that is a table."""

import math

import numpy as np
import pytest
from search_table import EOS, WORDS, Table

from paddle_tfm.protocols import MASKED_SCORE
from paddle_tfm_plugins.search.beam import Beam
from paddle_tfm_plugins.search.greedy import Greedy
from paddle_tfm_plugins.search.sampling import Sampling


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
    results = Beam(size=size, alpha=0.6).run(Table(limits, seed))
    for sentence, limit in enumerate(limits):
        assert [h.ids for h in results[sentence]] == reference_beam(Table(limits, seed), sentence, limit, size, 0.6)


@pytest.mark.parametrize("seed", range(6))
def test_greedy_takes_the_most_probable_token(seed):
    limits = [4, 6, 2, 5]
    table = Table(limits, seed)
    results = Greedy().run(table)
    for sentence, limit in enumerate(limits):
        prefix, score, token = (), 0.0, None
        while token != EOS:
            log_probs = Table(limits, seed).log_probs(sentence, prefix)
            token = int(np.argmax(log_probs)) if len(prefix) < limit else EOS
            score += log_probs[token]
            prefix = (*prefix, token)
        assert results[sentence][0].ids == list(prefix[:-1])
        assert results[sentence][0].score == pytest.approx(score, abs=1e-4)
    assert table.calls <= max(limits) + 1


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
def test_a_beam_ends_once_what_is_wanted_is_certain(alpha):
    """With the same outputs in the same order as one that goes on, in fewer steps."""
    search, calls = Beam(size=4, alpha=alpha), {}
    for seed in range(8):
        limits, every = [12, 9, 15], []
        for wanted in (None, 1, 2, 9):
            table = Table(limits, seed)
            table.wanted = wanted
            results = search.run(table)
            calls[wanted] = calls.get(wanted, 0) + table.calls
            every = every or results
            assert results == [several[:wanted] for several in every]
    assert calls[1] < calls[2] < calls[None] == calls[9]


def test_a_model_that_never_ends_is_ended():
    class Endless(Table):
        def log_probs(self, sentence, prefix):
            return np.array([MASKED_SCORE, -50.0, -0.1, -3.0, -3.0])

    for search in (Greedy(), Beam(size=2), Sampling(samples=2)):
        results = search.run(Endless([7, 3]))
        assert [len(hypotheses[0].ids) for hypotheses in results] == [7, 3]


@pytest.mark.parametrize("bad", [{"size": 0}, {"alpha": -1.0}])
def test_bad_options_are_refused(bad):
    with pytest.raises(ValueError, match="but is"):
        Beam(**bad)


def test_the_penalty_is_that_of_the_paper():
    assert Beam(alpha=0.6).penalty(1) == 1.0
    assert Beam(alpha=0.6).penalty(7) == pytest.approx(math.pow(2.0, 0.6))
