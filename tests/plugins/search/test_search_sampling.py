"""Sampling: the distribution that it draws from, the tails that it cuts, and draws that depend on nothing but the seed
and numbers."""

import numpy as np
import paddle
import pytest
from scipy.stats import chisquare

from paddle_tfm.protocols import MASKED_SCORE, Decoding
from paddle_tfm_plugins.search.greedy import Greedy
from paddle_tfm_plugins.search.sampling import NUCLEUS_CANDIDATES, Sampling

BOS, EOS = 0, 1
LOG_P = np.log(np.array([1e-300, 0.1, 0.4, 0.05, 0.25, 0.2]) / (1 - 1e-300))
LOG_P[BOS] = MASKED_SCORE


class Same(Decoding):
    """The same distribution at every step of every row."""

    bos, eos = BOS, EOS

    def __init__(self, sentences, limit=1, log_p=LOG_P):
        self.sentences, self.max_lengths, self.log_p = list(sentences), [limit] * len(list(sentences)), log_p

    def advance(self, tokens):
        return paddle.to_tensor(np.tile(self.log_p, (len(tokens), 1)), dtype="float32")

    def select(self, rows):
        pass


def first_tokens(search, count=20_000, **options):
    """The first token of that many sentences; the end where there is none."""
    return [(h.ids or [EOS])[0] for (h, *_) in search.run(Same(range(count), **options))]


def counts(tokens, size=6):
    return np.bincount(tokens, minlength=size)


def is_drawn_from(tokens, p):
    """Pearson's χ² test at 0.1%, and nothing of what has no probability."""
    observed, p = counts(tokens, len(p)), np.asarray(p) / np.sum(p)
    assert not observed[p == 0].any()
    return chisquare(observed[p > 0], p[p > 0] * len(tokens)).pvalue > 1e-3


P = np.exp(LOG_P)


@pytest.mark.parametrize(
    "options, p",
    [
        ({}, P),
        ({"temperature": 0.5}, P**2),
        ({"temperature": 2.0}, P**0.5),
        ({"top_k": 3}, [0, 0, 0.4, 0, 0.25, 0.2]),
        ({"top_k": 50}, P),
        ({"top_p": 0.8}, [0, 0, 0.4, 0, 0.25, 0.2]),
        ({"top_p": 0.86}, [0, 0.1, 0.4, 0, 0.25, 0.2]),
        ({"top_p": 0.5}, [0, 0, 0.4, 0, 0.25, 0]),
        ({"top_k": 3, "top_p": 0.7}, [0, 0, 0.4, 0, 0.25, 0]),  # 0.4 + 0.25 of the 0.85 that three hold
        ({"temperature": 0.5, "top_p": 0.85}, [0, 0, 0.16, 0, 0.0625, 0.04]),  # 0.16 + 0.0625 hold 0.80 of P²
    ],
)
def test_tokens_are_drawn_from_what_the_formula_says(options, p):
    """The draws of three seeds together: as sharp as if all were of one."""
    tokens = [token for seed in (1, 2, 3) for token in first_tokens(Sampling(seed=seed, **options), 7_000)]
    assert is_drawn_from(tokens, p)


def smallest_set(p, mass):
    """By trying: the fewest of the most probable tokens that hold `mass`."""
    order = np.argsort(-p, kind="stable")
    return next(set(order[:n].tolist()) for n in range(1, len(p) + 1) if p[order[:n]].sum() >= mass)


@pytest.mark.parametrize("size", [5, 40, 20 * NUCLEUS_CANDIDATES])
@pytest.mark.parametrize("top_p", [0.01, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_the_nucleus_is_the_smallest_set_that_holds_top_p(size, top_p, temperature):
    """Peaked rows and flat ones, whose nucleus holds more tokens than are looked at first."""
    rng = np.random.default_rng(size)
    logits = rng.normal(size=(20, size)) * np.linspace(0.1, 8, 20)[:, None]
    logits[:, 0] = MASKED_SCORE
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    weights, tokens = Sampling(temperature, top_p=top_p).weights(paddle.to_tensor(log_p, dtype="float32"))
    for row, masses, ids in zip(log_p, weights.numpy(), tokens.numpy()):
        p = np.exp(row.astype(np.float32).astype(np.float64) / temperature)
        chosen = ids[masses > 0]
        assert set(chosen.tolist()) == smallest_set(p / p.sum(), top_p)
        np.testing.assert_allclose(masses[masses > 0] / masses.sum(), p[chosen] / p[chosen].sum(), rtol=1e-4)
        assert (np.diff(ids) > 0).all()


def varied(sentences, limit=12):
    """Distributions that differ by sentence and step."""

    class Varied(Same):
        def __init__(self):
            super().__init__(sentences, limit)
            self.alive, self.step = self.sentences, 0

        def advance(self, tokens):
            rows = [np.random.default_rng([sentence, self.step]).normal(0, 2, 30) for sentence in self.alive]
            self.step += 1
            log_p = np.stack(rows)
            log_p[:, BOS] = MASKED_SCORE
            return paddle.to_tensor(log_p - np.log(np.exp(log_p).sum(-1, keepdims=True)), dtype="float32")

        def select(self, rows):
            self.alive = [self.alive[row] for row in rows.tolist()]

    return Varied()


@pytest.mark.parametrize("options", [{"top_k": 1}, {"temperature": 1e-4}, {"temperature": 1e-30}, {"top_p": 1e-9}])
def test_at_its_limits_it_is_greedy(options):
    greedy = Greedy().run(varied(range(20)))
    for results, ((ids, score),) in zip(Sampling(samples=2, **options).run(varied(range(20))), greedy):
        assert [h.ids for h in results] == [ids, ids]
        assert results[0].score == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize("options", [{}, {"top_k": 7}, {"top_p": 0.8}, {"samples": 3}])
def test_a_draw_depends_on_seed_and_numbers_alone(options):
    """The same sentence alone, among others, in another order; more samples leave the first ones as they are."""

    def results(sentences, **more):
        several = Sampling(**{**options, **more}).run(varied(sentences))
        return {sentence: sorted(map(tuple, ([*h.ids] for h in each))) for sentence, each in zip(sentences, several)}

    together = results(range(30))
    assert results([17]) == {17: together[17]}
    assert results([4, 29, 0, 17]) == {sentence: together[sentence] for sentence in (4, 29, 0, 17)}
    assert results(range(30)) == together != results(range(30), seed=2)
    more = results(range(30), samples=options.get("samples", 1) + 1)
    for sentence, outputs in together.items():
        assert all(more[sentence].count(output) >= outputs.count(output) for output in outputs)


def test_heat_never_makes_the_impossible_possible():
    impossible = np.where(np.arange(6) == 3, -np.inf, LOG_P)
    for options in ({}, {"top_k": 6}, {"top_p": 0.9999}):
        tokens = first_tokens(Sampling(temperature=1e9, **options), 2_000, log_p=impossible)
        assert set(tokens) == {EOS, 2, 4, 5}
