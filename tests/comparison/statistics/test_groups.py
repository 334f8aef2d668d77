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
    assert two_groups({**values, "a": [0.01, 0.3, 0.6], "c": [0.95, 0.8]}) is None  # something lies between


def test_variants_that_are_far_apart_are_no_groups_and_neither_are_values_that_are_nearly_equal():
    assert two_groups({"a": [0.01, 0.02, 0.03], "b": [0.97, 0.98, 0.99]}) is None
    assert two_groups({"a": [0.999, 1.0, 1.0], "b": [1.0, 1.0, 1.0]}) is None
    assert two_groups({"a": [0.0, 1.0, 0.0], "b": [1.0, 0.0][: FEWEST - 4]}) is None  # five values
    assert two_groups({}) is None


def test_wherever_a_difference_is_called_that_is_not_there_the_groups_are_seen():
    values = all_or_nothing(np.random.default_rng(5), (1500, VARIANTS + 1, 3))
    p = Looks([3]).p_values(values[:, 1:] - values[:, :1])[..., -1]
    called = values[(holm(p) <= 0.05).any(-1)]
    assert 0.11 < len(called) / len(values) < 0.17
    assert np.mean([two_groups(dict(enumerate(sweep))) is not None for sweep in called]) > 0.98


@pytest.mark.parametrize(("seeds", "seen"), [(3, 0.6), (5, 0.98), (8, 0.99), (12, 0.99)])
def test_a_variant_that_fails_in_one_run_of_five_is_called_different_until_a_failure_is_seen(seeds, seen):
    """Its mean is the baseline's. A failure is in 1 − ⅘ⁿ of n seeds; where there is none, nothing can be seen."""
    rng = np.random.default_rng(7)
    failed = rng.random((600, seeds)) < 0.2
    ours, base = (mean + 0.02 * rng.standard_normal(failed.shape) for mean in (1.0 * ~failed, 0.8))
    different = Looks([seeds]).p_values(ours - base)[:, -1] <= 0.05
    some = failed.any(-1) & ~failed.all(-1)
    assert different.mean() == pytest.approx(0.8**seeds, abs=0.05) and different[some].mean() < 0.03
    found = [two_groups({"base": one, "ours": other}) for one, other in zip(base, ours)]
    assert (
        np.mean([groups is not None and groups.divided == ["ours"] for groups in np.array(found, object)[some]]) > seen
    )
    assert np.mean([groups is not None for groups in np.array(found, object)[~some]]) < 0.01


@pytest.mark.parametrize("shape", ["standard_normal", "standard_exponential", "random"])
@pytest.mark.parametrize(("variants", "seeds"), [(2, 3), (2, 8), (VARIANTS + 1, 3), (VARIANTS + 1, 5)])
def test_ordinary_scores_are_rarely_called_so(rng, shape, variants, seeds):
    sweeps = getattr(rng, shape)((400, variants, seeds))
    seen = [two_groups(dict(enumerate(values))) for values in sweeps]
    assert np.mean([groups is not None for groups in seen]) <= (0.025 if shape == "standard_normal" else 0.06)
