"""Scores in two groups: where t tests of few pairs find what is not there, the verdict says so."""

import numpy as np
import pytest

from paddle_tfm.comparison.statistics import Groups, Looks, holm, two_groups
from paddle_tfm.comparison.statistics.groups import FEWEST

VARIANTS = 6


def all_or_nothing(rng, size):
    return (rng.random(size) < 0.5) + 0.02 * rng.standard_normal(size)


def test_the_groups_are_those_on_both_sides_of_the_widest_gap():
    values = {"a": [0.01, 0.99, 0.98], "b": [0.97, 0.02, np.nan], "c": [0.95, 0.96]}
    assert two_groups(values) == Groups(2, 5, 0.02, 0.95, ["a", "b"])
    assert two_groups({**values, "a": [0.01, 0.5, 0.98]}) is None  # something lies between


def test_variants_that_are_far_apart_are_no_groups_and_an_outlier_is_none():
    assert two_groups({"a": [0.01, 0.02, 0.03], "b": [0.97, 0.98, 0.99]}) is None
    assert two_groups({"a": [0.01, 0.98, 0.99], "b": [0.97, 0.98, 0.99]}) is None
    assert two_groups({"a": [0.0, 1.0, 0.0], "b": [1.0, 0.0][: FEWEST - 4]}) is None  # five values
    assert two_groups({}) is None


def test_wherever_a_difference_is_called_that_is_not_there_the_groups_are_seen():
    values = all_or_nothing(np.random.default_rng(5), (3000, VARIANTS + 1, 3))
    p = Looks([3]).p_values(values[:, 1:] - values[:, :1])[..., -1]
    called = values[(holm(p) <= 0.05).any(-1)]
    assert 0.12 < len(called) / len(values) < 0.16
    assert np.mean([two_groups(dict(enumerate(sweep))) is not None for sweep in called]) > 0.98


@pytest.mark.parametrize("shape", ["standard_normal", "standard_exponential", "random"])
def test_ordinary_scores_are_rarely_called_so(rng, shape):
    for pairs, most in ((3, 0.01), (5, 0.005)):
        sweeps = getattr(rng, shape)((1500, VARIANTS + 1, pairs))
        seen = [two_groups(dict(enumerate(values))) for values in sweeps]
        assert np.mean([groups is not None for groups in seen]) <= most
