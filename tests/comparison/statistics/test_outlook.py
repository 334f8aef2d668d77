"""How many more seeds: against simulation of what happens when they are trained."""

import numpy as np
import pytest
from scipy import stats

from paddle_tfm.comparison.statistics import Listed, Looks, MoreSeeds, more_seeds, smallest_seen


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


@pytest.mark.parametrize("differences", [[-np.inf] * 5, [-np.inf, -0.2, -0.1, -np.inf, -0.3]])
def test_runs_that_all_lose_settle_it_with_the_first_seed_at_which_a_sign_test_can(differences):
    """2 · ½⁵ = .063 > 5%, 2 · ½⁶ = .031."""
    assert more_seeds(np.array(differences), Listed(), 0.05) == MoreSeeds(1)
    assert more_seeds(np.array(differences), Listed(), 0.01) == MoreSeeds(3)  # 2 · ½⁸ = .0078


def test_where_some_diverge_that_many_seeds_have_a_chance_of_four_fifths(rng):
    differences = np.array([-np.inf, -1.0, -0.5, 0.5])
    size = 4 + more_seeds(differences, Listed(), 0.05).number

    def power(pairs):  # of a sign test of which four pairs are known, from the binomial distribution itself
        won = 1 + stats.binom.rvs(pairs - 4, 0.25, size=20_000, random_state=rng)
        p = 2 * stats.binom.cdf(np.minimum(won, pairs - won), pairs, 0.5)
        return (p <= 0.05).mean()

    assert power(size) > 0.75 and all(power(each) < 0.85 for each in range(5, size))


def test_where_no_seed_has_a_value_or_no_look_is_left_there_is_no_number():
    lost = np.full(5, -np.inf)
    assert more_seeds(lost, Looks([3, 5]), 0.05) is None
    assert more_seeds(lost, Looks([3, 5, 8, 12]), 0.05) == MoreSeeds(3)  # .0078 of the 28% of 5% at eight
    assert more_seeds(np.full(3, np.nan), Listed(), 0.05) == MoreSeeds(97, more_than=True)


@pytest.mark.parametrize(
    ("rule", "pairs", "level"), [(Listed(), 3, 0.05 / 5), (Listed(), 8, 0.05), (Looks([5]), 5, 0.01)]
)
def test_the_smallest_difference_seen_is_found_in_four_of_five(rule, pairs, level, rng):
    least = smallest_seen(pairs, rule, level)
    found = rule.p_values(least + rng.standard_normal((20_000, pairs)))[:, -1] <= level
    assert found.mean() == pytest.approx(0.8, abs=0.012)
    assert smallest_seen(1, rule, level) == np.inf
