"""e-values: against the integral that they are, against Ville's inequality, and against their own bounds."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from paddle_tfm.comparison.statistics import OpenEnded
from paddle_tfm.comparison.statistics.looks import student
from paddle_tfm.comparison.statistics.open_ended import evidence


@pytest.mark.parametrize(("t", "pairs", "width"), [(0.0, 4, 1.0), (1.7, 3, 2.0), (-3.1, 9, 0.5)])
def test_evidence_is_the_ratio_of_the_likelihoods_of_t(t, pairs, width):
    """The noncentral t, mixed over effects, beside the central one: another way to the same number."""

    def mixed(effect):
        return stats.nct.pdf(t, pairs - 1, effect * math.sqrt(pairs)) * stats.norm.pdf(effect, 0, width)

    alternative, _ = integrate.quad(mixed, -8 * width, 8 * width, limit=200)
    assert float(evidence(t, pairs, width)) == pytest.approx(alternative / stats.t.pdf(t, pairs - 1), rel=1e-5)


def test_it_is_one_on_average_and_rarely_ever_large(rng):
    noise = rng.standard_normal((40_000, 40))
    assert evidence(student(noise[:, :6]), 6, 0.5).mean() == pytest.approx(1, abs=0.05)
    p = OpenEnded().p_values(noise)
    for level in (0.2, 0.05, 0.01):
        assert (p[:, -1] <= level).mean() <= level
    assert (p[:, -1] <= 0.2).mean() > 0.05  # and not because it never is


def test_the_bound_is_where_the_evidence_is_one_over_the_level():
    rule = OpenEnded()
    for size, level in ((5, 0.05), (12, 0.05 / 6), (40, 0.01)):
        assert float(evidence(rule.bound(size, level), size)) == pytest.approx(1 / level)
    assert rule.bound(3, 0.01) == math.inf  # however large t is


def test_signs_carry_on_where_a_run_diverged():
    rule, differences = OpenEnded(), np.array([1.0, 1.2, 0.9, 1.1, np.inf, 1.0, np.inf, 0.8])
    p = rule.p_values(differences)
    np.testing.assert_array_equal(p[:3], rule.p_values(differences[:4]))
    four_heads = 2**4 / 5  # ∫ q⁴ dq = 1/5
    assert p[-1] == pytest.approx(1 / (evidence(student(differences[:4]), 4) * four_heads))
    mixed = np.array([np.nan, np.inf, -np.inf, np.nan])
    assert (rule.p_values(mixed) <= 1).all()


def test_large_effects_are_found_and_it_costs_more_than_looks(rng):
    p = OpenEnded().p_values(rng.standard_normal((4000, 40)) + 1)
    first = np.where((p <= 0.05).any(-1), (p <= 0.05).argmax(-1) + 2, 40)
    assert 12 < first.mean() < 15 and (p[:, -1] <= 0.05).mean() > 0.99
