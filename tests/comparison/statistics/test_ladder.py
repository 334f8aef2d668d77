"""Lines through paired differences by compute: against SciPy, roots, nested models and simulation."""

import numpy as np
import pytest
from scipy import optimize, stats

from paddle_tfm.comparison.statistics import slope

SIZES = (1.0, 4.0, 16.0, 64.0)


def drawn(rng, rise, zero, noise=0.3, seeds=3):
    return {c: list(rise * np.log2(c / zero) + noise * rng.standard_normal(seeds)) for c in SIZES}


def test_a_slope_is_least_squares_with_students_interval(rng):
    rungs = drawn(rng, 0.5, 8.0, 0.1)
    line = slope(rungs)
    x, y = np.repeat(np.log2(SIZES), 3), np.concatenate(list(rungs.values()))
    fit = stats.linregress(x, y)
    assert (line.slope, line.intercept) == (pytest.approx(fit.slope), pytest.approx(fit.intercept))
    assert line.high - line.slope == pytest.approx(stats.t.ppf(0.975, 10) * fit.stderr)
    assert line.degrees_of_freedom == 10
    assert line.place == "inside" and line.crossing == pytest.approx(2 ** (-fit.intercept / fit.slope))
    strict = slope(rungs, 0.025)
    assert strict.high - strict.slope == pytest.approx(stats.t.ppf(1 - 0.0125, 10) * fit.stderr)


def test_the_band_is_that_of_the_covariance_of_both_coefficients(rng):
    rungs = drawn(rng, 0.5, 8.0)
    x, y = np.repeat(np.log2(SIZES), 3), np.concatenate(list(rungs.values()))
    design = np.stack([np.ones_like(x), x], 1)
    beta, (rest,), *_ = np.linalg.lstsq(design, y, rcond=None)
    covariance = rest / 10 * np.linalg.inv(design.T @ design)
    for compute in (0.3, 1.0, 10.0, 200.0):
        at = np.array([1, np.log2(compute)])
        half = stats.t.ppf(0.975, 10) * np.sqrt(at @ covariance @ at)
        assert slope(rungs).band(compute) == pytest.approx((at @ beta - half, at @ beta + half))


def test_a_crossing_has_an_interval_where_the_band_holds_zero_and_only_if_the_line_is_no_level(rng):
    line = slope(drawn(rng, 0.5, 8.0))
    low, high = (
        optimize.brentq(lambda log, i=i: line.band(2**log)[i], *ends)
        for i, ends in ((1, (-2, np.log2(line.crossing))), (0, (np.log2(line.crossing), 8)))
    )
    assert line.crossing_interval == pytest.approx((2**low, 2**high))
    level = slope({c: [0.1, -0.2, 0.15] for c in SIZES})
    assert level.low < 0 < level.high and level.crossing_interval is None


def test_intervals_hold_the_truth_and_a_seeds_own_effect_widens_those_of_the_slope():
    rng, shared = np.random.default_rng(5), []
    lines = [slope(drawn(rng, 0.5, 8.0)) for _ in range(600)]
    assert np.mean([line.low <= 0.5 <= line.high for line in lines]) == pytest.approx(0.95, abs=0.03)
    ends = [line.crossing_interval for line in lines]
    assert np.mean([end is None or end[0] <= 8 <= end[1] for end in ends]) == pytest.approx(0.95, abs=0.03)
    for _ in range(300):
        of_seeds = rng.standard_normal(3)
        line = slope({c: list(0.3 * rng.standard_normal(3) + of_seeds) for c in SIZES})
        shared.append(line.low <= 0 <= line.high)
    assert np.mean(shared) > 0.98


def test_lack_of_fit_is_the_f_test_of_a_line_inside_of_a_mean_for_each_size(rng):
    curved = {c: list(0.1 * (np.log2(c) - 3) ** 2 + 0.1 * rng.standard_normal(3)) for c in SIZES}
    x, y = np.repeat(np.log2(SIZES), 3), np.concatenate(list(curved.values()))
    rest = [
        np.linalg.lstsq(design, y, rcond=None)[1][0]
        for design in (np.stack([np.ones(12), x], 1), (x[:, None] == np.unique(x)).astype(float))
    ]
    statistic = ((rest[0] - rest[1]) / 2) / (rest[1] / 8)
    assert slope(curved).misfit == pytest.approx(stats.f.sf(statistic, 2, 8)) and slope(curved).misfit < 0.01
    straight = [slope(drawn(rng, 0.5, 8.0)).misfit < 0.05 for _ in range(400)]
    assert np.mean(straight) == pytest.approx(0.05, abs=0.03)
    assert slope({c: curved[c] for c in SIZES[:2]}).misfit is None
    assert slope({c: [np.log2(c)] * 2 for c in SIZES}).misfit is None


def test_nothing_is_said_beyond_four_times_what_was_tested():
    def line(zero):
        return slope({c: [np.log2(c / zero)] * 2 for c in (1.0, 10.0, 100.0)})

    places = [line(zero).place for zero in (30, 300, 0.3, 500)]
    assert places == ["inside", "outside", "outside", "none"]
    assert line(500).crossing is None and line(300).crossing == pytest.approx(300)
    assert line(30).at(390) == pytest.approx(np.log2(13))
    assert slope({1.0: [0.2, 0.2], 10.0: [0.2, 0.2]}).place == "none"  # never 0
