"""Searches on tiny real models against all outputs that there are, with and without constraints and forced
beginnings."""

import itertools
from collections import Counter

import numpy as np
import paddle
import pytest
from scipy.stats import chisquare
from search_tiny import LONGEST, WORDS, encoded

from paddle_tfm.data.batches import collate
from paddle_tfm.data.vocabulary import BOS, EOS, PAD
from paddle_tfm.protocols import Constraints, Hypothesis, Search
from paddle_tfm.search.decoding import decode_all, decode_batch
from paddle_tfm_plugins.search.beam import Beam
from paddle_tfm_plugins.search.greedy import Greedy
from paddle_tfm_plugins.search.sampling import Sampling

WIDE = 300  # more than the 121 outputs of up to 4 tokens


def wide(alpha=0.0, **options):
    return Beam(size=WIDE, alpha=alpha, max_length=LONGEST, **options)


def ranked(outputs, search, accepts=lambda ids: True):
    """The outputs that are wanted, best first by the paper's score, with their log-probabilities."""
    accepted = {ids: score for ids, score in outputs.items() if accepts(ids)}
    return sorted(accepted.items(), key=lambda item: -item[1] / search.penalty(len(item[0]) + 1))


def agree(results, expected):
    assert [tuple(h.ids) for h in results] == [ids for ids, _ in expected]
    np.testing.assert_allclose([h.score for h in results], [score for _, score in expected], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("alpha", [0.0, 1.5])
@pytest.mark.parametrize("overrides", [[], ["model.norm=batch", "model.attention=linear"]])
def test_a_wide_beam_ranks_every_output(tiny_model, examples, every_output, alpha, overrides):
    model, search = tiny_model(*overrides), wide(alpha)
    for example, results in zip(examples, decode_all(model, examples, search)):
        agree(results, ranked(every_output(model, example), search))


@pytest.mark.parametrize("size", [1, 2, 5])
def test_n_best_is_the_best_of_what_a_beam_met(tiny_model, examples, every_output, size):
    """As many as were asked for, in the order of their scores, each with its true log-probability, none twice."""
    model, search = tiny_model(), Beam(size=size, max_length=LONGEST)
    for example, results in zip(examples, decode_all(model, examples, search)):
        every = every_output(model, example)
        assert len(results) == len({tuple(h.ids) for h in results}) == size
        agree(results, ranked({tuple(h.ids): every[tuple(h.ids)] for h in results}, search))


PREFIXES = [[5, 4], [], [4, 4, 4]]


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_with_a_prefix_the_best_of_all_outputs_that_begin_with_it_is_found(tiny_model, examples, every_output, alpha):
    """Each sentence has its own; forced tokens count in the score with their own log-probability."""
    model, search = tiny_model(), wide(alpha)
    results = decode_all(model, examples, search, prefixes=PREFIXES)
    for example, prefix, hypotheses in zip(examples, PREFIXES, results):
        every = every_output(model, example)
        agree(hypotheses, ranked(every, search, lambda ids, prefix=prefix: list(ids[: len(prefix)]) == prefix))


def test_a_prefix_longer_than_the_limit_is_the_whole_output(tiny_model, examples):
    prefix = [4, 5, 4, 5, 4, 5]
    for search in (Greedy(max_length=2), Beam(size=3, max_length=2), Sampling(max_length=2)):
        for hypotheses in decode_all(tiny_model(), examples, search, prefixes=[prefix] * 3):
            assert hypotheses[0].ids == prefix


def repeats(ids, n):
    """Whether a run of n tokens stands twice in ids, by hand."""
    runs = [tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)]
    return len(runs) > len(set(runs))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_n_gram_comes_twice_and_nothing_else_is_lost(tiny_model, examples, every_output, n):
    model, search = tiny_model(), wide(0.6, no_repeat_ngram=n)
    for example, results in zip(examples, decode_all(model, examples, search)):
        agree(results, ranked(every_output(model, example), search, lambda ids: not repeats(ids, n)))


@pytest.mark.parametrize("shortest", [1, 4])
def test_no_output_is_shorter_than_min_length(tiny_model, examples, every_output, shortest):
    model, search = tiny_model(), wide(0.6, min_length=shortest)
    for example, results in zip(examples, decode_all(model, examples, search)):
        agree(results, ranked(every_output(model, example), search, lambda ids: len(ids) >= shortest))


def test_constraints_and_prefixes_together(tiny_model, examples, every_output):
    """What is forced may repeat and counts as said; afterwards nothing repeats it."""
    model, search = tiny_model(), wide(0.6, min_length=3, no_repeat_ngram=2)
    results = decode_all(model, examples, search, prefixes=PREFIXES)

    def accepts(prefix):
        def possible(ids):
            # each token after the prefix must not complete a run of two that stands before it
            new = range(max(len(prefix), 1), len(ids))
            fresh = all(ids[t - 1 : t + 1] not in [ids[s - 1 : s + 1] for s in range(1, t)] for t in new)
            return list(ids[: len(prefix)]) == prefix and len(ids) >= 3 and fresh

        return possible

    for example, prefix, hypotheses in zip(examples, PREFIXES, results):
        agree(hypotheses, ranked(every_output(model, example), search, accepts(prefix)))


def test_where_nothing_else_is_possible_the_end_is(tiny_model, examples, every_output):
    """Three words, none twice, at least four tokens: all three in some order, and the end with its own probability."""
    model, search = tiny_model(), wide(min_length=4, no_repeat_ngram=1)
    outputs = [every_output(model, example) for example in examples]
    for every, results in zip(outputs, decode_all(model, examples, search)):
        agree(results, ranked(every, search, lambda ids: sorted(ids) == sorted(WORDS)))
    for search in (Greedy(min_length=9, no_repeat_ngram=1), Sampling(samples=20, min_length=9, no_repeat_ngram=1)):
        for every, hypotheses in zip(outputs, decode_all(model, examples, search)):
            for ids, score in hypotheses:
                assert sorted(ids) == sorted(WORDS)
                assert score == pytest.approx(every[tuple(ids)], abs=1e-3)


def test_lengths_are_bounded_by_what_is_said_and_by_the_model(tiny_model, examples):
    model = tiny_model()  # max_length 16: 15 tokens and the end

    def lengths(**options):
        searches = (Greedy(**options), Beam(size=2, **options), Sampling(samples=30, **options))
        results = [hypotheses for search in searches for hypotheses in decode_all(model, examples, search)]
        assert min(h.score for hypotheses in results for h in hypotheses) > -1e3  # the end is possible at the limit
        return [[len(h.ids) for h in hypotheses] for hypotheses in results]

    assert all(max(each) <= 3 for each in lengths(max_length=3))
    assert all(each == [3] * len(each) for each in lengths(max_length=3, min_length=3))
    assert all(min(each) >= 9 for each in lengths(max_ratio=0, max_extra=1, min_length=9))
    assert all(each == [15] * len(each) for each in lengths(min_length=99))


class Random(Search):
    """Somebody's own search: any possible token, and never a look at constraints."""

    def __init__(self, constraints):
        self.declared = constraints

    def constraints(self):
        return self.declared

    def run(self, decoding):
        rng = np.random.default_rng(0)
        outputs, scores = [[] for _ in decoding.max_lengths], [0.0 for _ in decoding.max_lengths]
        alive, tokens = list(range(len(outputs))), paddle.full([len(outputs)], decoding.bos, dtype="int64")
        while alive:
            log_probs = decoding.advance(tokens).numpy()
            going, chosen = [], []
            for row, (i, values) in enumerate(zip(alive, log_probs)):
                full = len(outputs[i]) == decoding.max_lengths[i]
                token = decoding.eos if full else int(rng.choice(np.flatnonzero(values > -5e8)))
                scores[i] += values[token]
                if token != decoding.eos:
                    outputs[i].append(token)
                    going.append(row)
                    chosen.append(token)
            alive = [alive[row] for row in going]
            if alive:
                decoding.select(paddle.to_tensor(going, dtype="int64"))
                tokens = paddle.to_tensor(chosen, dtype="int64")
        return [[Hypothesis(ids, score)] for ids, score in zip(outputs, scores)]


def test_a_search_of_ones_own_keeps_to_what_it_declares(tiny_model):
    model = tiny_model()
    examples = [encoded([4, 5, 4]) for _ in range(60)]
    free = decode_all(model, examples, Random(Constraints()))
    assert any(repeats(h.ids, 2) for (h,) in free) and any(len(h.ids) < 3 for (h,) in free)
    held = decode_all(model, examples, Random(Constraints(3, 7, 2)), prefixes=[[5, 5, 5]] * 60)
    for (hypothesis,) in held:
        assert 3 <= len(hypothesis.ids) <= 7
        assert hypothesis.ids[:3] == [5, 5, 5]
        assert [5, 5] not in [hypothesis.ids[i : i + 2] for i in range(2, len(hypothesis.ids))]
        assert not repeats(hypothesis.ids[2:], 2)
        assert np.isfinite(hypothesis.score) and hypothesis.score > -1e4


def test_samples_of_a_model_come_as_often_as_their_probability(tiny_model, examples, every_output):
    """Pearson's χ² test at 0.1% over all outputs that ended by themselves, and the rest together."""
    model = tiny_model()
    model.head.output.bias.set_value(paddle.to_tensor([-30.0, -30.0, 0, 0, 0, 0]))  # no mass on what is never drawn
    for example, results in zip(examples, decode_all(model, examples, Sampling(samples=5_000, max_length=LONGEST))):
        p = {ids: np.exp(score) for ids, score in every_output(model, example).items() if len(ids) < LONGEST}
        names = Counter(tuple(h.ids) for h in results)
        often = [ids for ids in p if 5_000 * p[ids] >= 5]
        observed, expected = [names[ids] for ids in often], [5_000 * p[ids] for ids in often]
        assert len(often) > 5
        assert chisquare([*observed, 5_000 - sum(observed)], [*expected, 5_000 - sum(expected)]).pvalue > 1e-3


def test_a_word_of_another_sentences_source_is_impossible(tiny_model):
    """A pointer head's ids beyond the vocabulary (6) name words of the own source: one has two, one has one, one
    none."""
    model = tiny_model("model.head=pointer", "model.max_length=32")
    examples = [
        encoded([3, 3, 4], ("zwei", "drei"), [6, 7, 4]),
        encoded([3, 4], ("eins",), [6, 4]),
        encoded([4, 5]),
    ]
    highest = [7, 6, 5]
    for search in (Beam(size=WIDE, max_length=2), Sampling(samples=200, temperature=50.0, max_length=3)):
        for top, hypotheses in zip(highest, decode_all(model, examples, search)):
            used = set(itertools.chain.from_iterable(h.ids for h in hypotheses))
            assert max(used) == top
            assert not used & {PAD, BOS, EOS}
            assert min(h.score for h in hypotheses) > -1e3


@pytest.mark.parametrize(
    "search", [Greedy(no_repeat_ngram=2), Beam(size=3, min_length=2), Sampling(samples=3, top_p=0.9)]
)
def test_batches_and_their_order_change_nothing(tiny_model, search):
    """One sentence at a time, all at once sorted by length, all at once in any order."""
    model, rng = tiny_model(), np.random.default_rng(3)
    examples = [encoded(rng.integers(4, 6, size=rng.integers(1, 8)).tolist()) for _ in range(40)]
    prefixes = [rng.integers(4, 6, size=rng.integers(0, 3)).tolist() for _ in examples]
    alone = decode_all(model, examples, search, max_tokens=1, prefixes=prefixes)
    together = decode_all(model, examples, search, prefixes=prefixes)
    mixed = rng.permutation(len(examples)).tolist()
    batch = collate([examples[i] for i in mixed], mixed).tensors()
    unsorted = dict(zip(mixed, decode_batch(model, batch, search, [prefixes[i] for i in mixed])))
    for i, hypotheses in enumerate(alone):
        for other in (together[i], unsorted[i]):
            assert [h.ids for h in other] == [h.ids for h in hypotheses]
            np.testing.assert_allclose([h.score for h in other], [h.score for h in hypotheses], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("search", [Greedy(), Beam(size=3), Beam(size=WIDE, max_length=3), Sampling(samples=50)])
def test_minus_infinity_is_as_good_as_a_billion(tiny_model, examples, search):
    """A head may say -inf for what is impossible: scores stay finite, and it is never chosen."""
    model = tiny_model()
    plain = model.head.log_probs

    def without_unknown(h, memory):
        return plain(h, memory) + paddle.to_tensor([0.0, 0.0, 0.0, -np.inf, 0.0, 0.0])

    model.head.log_probs = without_unknown
    for hypotheses in decode_all(model, examples, search):
        assert all(np.isfinite(h.score) and h.score > -1e4 and set(h.ids) <= {4, 5} for h in hypotheses)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"min_length": -1}, "`min_length` must not be negative, but is -1"),
        ({"no_repeat_ngram": -2}, "`no_repeat_ngram` must not be negative, but is -2"),
        ({"max_length": 0}, "`max_length` must be at least 1 and `min_length`=0, but is 0"),
        ({"max_length": 3, "min_length": 4}, "`max_length` must be at least 1 and `min_length`=4, but is 3"),
        ({"max_extra": -1}, "`max_extra` must not be negative, but is -1"),
        ({"max_ratio": -1}, "`max_ratio` must be in [0, inf), but is -1"),
    ],
)
def test_bounds_that_cannot_be_are_refused(options, message):
    for search in (Greedy, Beam, Sampling):
        with pytest.raises(ValueError) as error:
            search(**options)
        assert str(error.value) == message
