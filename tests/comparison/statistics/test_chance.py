"""Variance components, against simulation."""

import numpy as np
import pytest

from paddle_tfm.comparison.statistics import components


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
