"""How many more seeds: against simulation of what happens when they are trained."""

import numpy as np
import pytest

from paddle_tfm.comparison.statistics import Looks, MoreSeeds, OpenEnded, more_seeds


def with_moments(mean, deviation, count, rng):
    values = rng.standard_normal(count)
    return mean + deviation * (values - values.mean()) / values.std(ddof=1)


def test_that_many_seeds_have_a_chance_of_four_fifths_and_fewer_have_less(rng):
    differences = with_moments(0.7, 1.0, 6, rng)
    more = more_seeds(differences, Looks([6]), 0.05)
    size = 6 + more.number
    assert not more.more_than

    def power(pairs):
        return (Looks([pairs]).p_values(rng.standard_normal((20_000, pairs)) + 0.7)[:, -1] <= 0.05).mean()

    assert power(size) == pytest.approx(0.8, abs=0.03) and power(size) > 0.79
    assert power(size - 2) < 0.79


def test_it_ends_at_a_look_where_there_are_more(rng):
    differences = with_moments(1.0, 1.0, 3, rng)
    assert 3 + more_seeds(differences, Looks([3, 5, 8, 12, 20]), 0.05).number in (5, 8, 12, 20)
    assert more_seeds(differences, OpenEnded(), 0.05).number > 3


def test_an_effect_that_nobody_cares_for_shortens_it_and_none_has_no_end(rng):
    nothing = with_moments(0.0, 1.0, 5, rng)
    assert more_seeds(nothing, Looks([5]), 0.05) == MoreSeeds(95, more_than=True)
    within = more_seeds(nothing, Looks([5]), 0.05, smallest=1.0)
    assert not within.more_than and within.number < 15
    found = rng.standard_normal((4000, 5 + within.number))
    half = Looks([found.shape[1]]).bound(found.shape[1], 0.05) * found.std(-1, ddof=1) / np.sqrt(found.shape[1])
    assert (np.abs(found.mean(-1)) + half <= 1).mean() == pytest.approx(0.8, abs=0.07)


def test_one_pair_says_nothing():
    assert more_seeds(np.array([1.0]), Looks([5]), 0.05) is None
    assert more_seeds(np.array([-np.inf, 1.0, np.nan]), Looks([5]), 0.05) is None
