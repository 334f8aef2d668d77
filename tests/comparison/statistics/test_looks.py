"""Bounds for several looks: against simulation, against the t test where there is one look, and against each other."""

import numpy as np
import pytest
from scipy import stats

from paddle_tfm.comparison.statistics import Looks, recursion
from paddle_tfm.comparison.statistics.looks import student

LOOKS = (3, 5, 8, 12)


@pytest.fixture(scope="module")
def noise():
    """Paired differences of two systems that are the same: [comparisons, pairs]."""
    return np.random.default_rng(5).standard_normal((200_000, 12))


def p_at(noise, sizes):
    return np.stack([2 * stats.t.sf(np.abs(student(noise[:, :n])), n - 1) for n in sizes], -1)


@pytest.mark.parametrize("sizes", [LOOKS, (3, 4, 5, 6, 7, 8, 9, 10, 11, 12), (4, 11)])
def test_looks_spend_their_share_of_five_percent_in_simulation(noise, sizes):
    looks = Looks(sizes)
    crossed = np.logical_or.accumulate(p_at(noise, sizes) < looks.nominal, -1).mean(0)
    wanted = 0.05 * (np.array(sizes) / sizes[-1]) ** 1.5
    assert np.abs(crossed - wanted).max() < 4 * np.sqrt(0.05 * 0.95 / len(noise))


@pytest.mark.parametrize("scale", [0.02, 0.3, 3.0])
def test_the_recursion_is_what_simulation_finds_at_other_levels(noise, scale):
    nominal = np.array(Looks(LOOKS).nominal) * scale
    found = (p_at(noise, LOOKS) < nominal).any(-1).mean()
    exact = recursion.crossing(LOOKS, nominal)
    assert found == pytest.approx(exact, abs=4 * np.sqrt(exact / len(noise)))


def test_a_p_value_is_the_level_at_which_the_interval_ends_at_zero(rng):
    looks = Looks(LOOKS)
    for row in rng.standard_normal((20, 12)) + 0.8:
        p = looks.p_values(row)[-1]
        inside, outside = looks.interval(row, p * 0.98), looks.interval(row, min(p * 1.02, 0.999))
        assert inside[0] <= 0 <= inside[1]
        assert outside[0] > 0 or outside[1] < 0


def test_bounds_of_smaller_levels_lie_inside_and_p_values_only_fall(rng):
    looks = Looks(LOOKS)
    for size in LOOKS:
        bounds = [looks.bound(size, level) for level in (0.2, 0.05, 0.05 / 6, 1e-4, 1e-7)]
        assert bounds == sorted(bounds)
    p = looks.p_values(rng.standard_normal((100, 12)))
    assert (np.diff(p, axis=-1) <= 0).all()


def test_neither_scale_nor_what_comes_after_a_look_changes_it(rng):
    looks, differences = Looks(LOOKS), rng.standard_normal((10, 12))
    p = looks.p_values(differences)
    np.testing.assert_allclose(looks.p_values(1e-6 * differences), p, rtol=1e-6)
    np.testing.assert_array_equal(looks.p_values(differences[:, :8]), p[:, :3])
    assert looks.p_values(differences[:, :2]).shape == (10, 0)


def test_the_same_looks_cost_nothing_again(monkeypatch):
    first = Looks((4, 6, 10)).bound(6, 0.01)
    monkeypatch.setattr(recursion, "crossing", None)  # whoever computes again fails
    assert Looks((4, 6, 10)).bound(6, 0.01) == first


def test_where_a_run_diverged_a_look_is_a_sign_test_at_its_share_of_the_level():
    looks, differences = Looks(LOOKS), np.array([np.inf, 1, 2, 1, 3, 1, 2, 4, -1, 1, 1, 1])
    at_eight = stats.binomtest(8, 8).pvalue / ((8 / 12) ** 1.5 - (5 / 12) ** 1.5)
    at_twelve = stats.binomtest(11, 12).pvalue / (1 - (8 / 12) ** 1.5)
    assert looks.p_values(differences)[2:] == pytest.approx([at_eight, min(at_eight, at_twelve)])
    ordered = np.sort(np.random.default_rng(1).standard_normal(10))
    assert Looks([10]).interval(np.append(ordered[1:], -np.inf), 0.05) == (ordered[1], ordered[8])  # 97.9%: textbooks
