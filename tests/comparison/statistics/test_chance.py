"""Variance components and the best of k trials: against formulas, subsets and simulation."""

import itertools

import numpy as np
import pytest

from paddle_tfm.comparison.statistics import components, expected_best


def table(rng, seeds, items, deviations):
    by_seed, by_item, rest = deviations
    return (
        by_seed * rng.standard_normal((seeds, 1))
        + by_item * rng.standard_normal((1, items))
        + rest * rng.standard_normal((seeds, items))
    )


def test_components_are_unbiased_and_say_what_limits(rng):
    found = [components(table(rng, 12, 40, (1.0, 0.5, 0.8))) for _ in range(400)]
    for name, wanted in (("of_seeds", 1.0 / 12), ("of_items", 0.25 / 40), ("residual", 0.64 / 480)):
        assert np.mean([getattr(item, name) for item in found]) == pytest.approx(wanted, rel=0.08)
    means = [table(rng, 12, 40, (1.0, 0.5, 0.8)).mean() for _ in range(4000)]
    assert np.mean([item.total for item in found]) == pytest.approx(np.var(means), rel=0.1)
    assert components(table(rng, 5, 500, (1.0, 0.5, 0.8))).limited_by == "seeds"
    assert components(table(rng, 5, 20, (0.01, 2.0, 0.1))).limited_by == "test items"
    assert components(np.ones((3, 5))).limited_by == "neither"
    with pytest.raises(ValueError, match="2 or more"):
        components(np.ones((1, 5)))


def test_the_best_of_k_is_the_mean_over_all_sets_of_k(rng):
    scores = rng.standard_normal(7)
    wanted = [np.mean([max(some) for some in itertools.combinations(scores, k)]) for k in range(1, 8)]
    np.testing.assert_allclose(expected_best(scores), wanted)
    np.testing.assert_allclose(expected_best(-scores, higher_is_better=False), -np.array(wanted))
    assert expected_best([1.0, np.nan, 3.0])[0] == pytest.approx(5 / 3)  # diverged: as bad as the worst
    with pytest.raises(ValueError, match="trial"):
        expected_best([np.nan])


def test_it_is_unbiased_where_drawing_with_replacement_is_not(rng):
    """Exponential trials: the best of k is 1 + 1/2 + … + 1/k on average."""
    trials, k = np.sort(rng.exponential(size=(4000, 8)), -1), 6
    truth = sum(1 / i for i in range(1, k + 1))
    share = np.arange(9) / 8
    with_replacement = trials @ np.diff(share**k)  # arXiv:1909.03004
    ours = np.array([expected_best(row)[k - 1] for row in trials])
    assert ours.mean() == pytest.approx(truth, abs=0.06)
    assert with_replacement.mean() < truth - 0.15
