"""From paired values to verdicts on several variants."""

import math

import numpy as np
import pytest
from scipy import stats

from paddle_tfm.comparison.statistics import Looks, decide, holm, worst_value
from paddle_tfm.comparison.statistics.holm import holm_levels

NAN = math.nan
BASE = np.array([10.0, 10.4, 9.7, 10.1, 9.9, 10.2, 9.8, 10.0])
NOISE = np.array([0.3, -0.2, 0.1, -0.3, 0.2, 0.0, -0.1, 0.25])


def pairs(shift, noise=NOISE, count=8):
    return list(zip((BASE + shift + noise)[:count], BASE[:count]))


def closed_testing(p):
    """Holm's adjusted p-values by the closure of Bonferroni's test, subset by subset (Marcus, Peritz, Gabriel 1976)."""
    subsets = [[i for i in range(len(p)) if mask >> i & 1] for mask in range(1, 2 ** len(p))]
    return [max(min(1, len(s) * min(p[i] for i in s)) for s in subsets if i in s) for i in range(len(p))]


def test_holm_is_the_closure_of_bonferroni(rng):
    for _ in range(20):
        p = rng.random(6) ** 3
        np.testing.assert_allclose(holm(p), closed_testing(p))
    table = rng.random((4, 3, 5))
    np.testing.assert_array_equal(holm(table)[2, 1], holm(table[2, 1]))
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])  # Wikipedia's example
    np.testing.assert_allclose(
        holm_levels(np.array([0.01, 0.04, 0.03, 0.005]), 0.05), [0.05 / 3, 0.0125, 0.0125, 0.0125]
    )


def test_one_variant_and_one_look_is_the_paired_t_test():
    (verdict,) = decide({"v": pairs(0.15)}, Looks([8])).values()
    ours, base = np.array(pairs(0.15)).T
    wanted = stats.ttest_rel(ours, base)
    assert verdict.p == pytest.approx(wanted.pvalue)
    assert (verdict.low, verdict.high) == pytest.approx(tuple(wanted.confidence_interval(0.95)))
    assert verdict.half_width == pytest.approx(np.ptp(wanted.confidence_interval(0.95)) / 2)
    assert verdict.verdict == "undetermined" and not verdict.is_settled and verdict.more.number > 0


def test_verdicts_follow_the_direction_of_the_metric():
    found = decide({"up": pairs(2), "down": pairs(-2)}, Looks([8]))
    assert (found["up"].verdict, found["down"].verdict) == ("better", "worse")
    turned = decide({"up": pairs(2), "down": pairs(-2)}, Looks([8]), higher_is_better=False)
    assert (turned["up"].verdict, turned["down"].verdict) == ("worse", "better")
    for name in found:  # differences are in the metric's own direction
        assert (turned[name].low, turned[name].high) == pytest.approx((found[name].low, found[name].high))
        assert turned[name].mean == pytest.approx(found[name].mean)


def test_more_variants_need_more_evidence_and_intervals_agree_with_verdicts(rng):
    alone = decide({"a": pairs(0.22)}, Looks([8]))["a"]
    crowd = decide({"a": pairs(0.22), **{f"v{i}": pairs(0, rng.permutation(NOISE)) for i in range(5)}}, Looks([8]))["a"]
    assert (alone.verdict, crowd.verdict) == ("better", "undetermined")
    assert crowd.high - crowd.low > alone.high - alone.low
    for _ in range(30):
        names = "abcd"
        found = decide({n: pairs(rng.normal() / 4, rng.permutation(NOISE)) for n in names}, Looks([3, 5, 8]))
        for verdict in found.values():
            assert (verdict.verdict in ("better", "worse")) == (verdict.low > 0 or verdict.high < 0)
            assert (verdict.p <= 0.05) == verdict.is_settled


def test_a_difference_that_nobody_cares_for_settles_too():
    found = decide({"v": pairs(0.05)}, Looks([3, 5, 8]), smallest=0.5)["v"]
    assert found.verdict == "equivalent" and -0.5 <= found.low <= found.high <= 0.5
    assert decide({"v": pairs(0.05)}, Looks([3, 5, 8]), smallest=0.1)["v"].verdict == "undetermined"
    small = decide({"v": pairs(0.3)}, Looks([8]), smallest=0.6)["v"]  # different, and less than what matters
    assert small.verdict == "equivalent" and small.low > 0 and small.p < 0.05
    assert decide({"v": pairs(0.3)}, Looks([8]), smallest=0.2)["v"].verdict == "better"


@pytest.mark.reliability
def test_equivalence_is_wrong_in_at_most_five_percent_of_sweeps(rng):
    """Three variants that are worse by exactly the smallest effect of interest."""
    wrong = 0
    for _ in range(250):
        base = rng.standard_normal(8)
        found = decide(
            {n: list(zip(base - 1 + 0.5 * rng.standard_normal(8), base)) for n in "abc"}, Looks([3, 5, 8]), smallest=1
        )
        wrong += any(item.verdict == "equivalent" for item in found.values())
    assert wrong / 250 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 250)


def test_only_whole_looks_are_used_and_order_of_variants_means_nothing():
    looks = Looks([3, 5, 8])
    six, five = decide({"v": pairs(0.2, count=6)}, looks)["v"], decide({"v": pairs(0.2, count=5)}, looks)["v"]
    assert (six.used, six.pairs, six.p, six.low) == (5, 6, five.p, five.low)
    none = decide({"v": pairs(5, count=2)}, looks)["v"]
    assert (none.verdict, none.used, none.p, none.low) == ("undetermined", 0, 1.0, None)
    one, other = pairs(0.3), pairs(-0.2)
    assert decide({"a": one, "b": other}, looks)["b"] == decide({"b": other, "a": one}, looks)["b"]
    assert decide({}, looks) == {}
    assert decide({"v": []}, looks)["v"].mean is None


def test_a_variant_that_changes_nothing_is_equal():
    same = list(zip(BASE, BASE))
    assert decide({"v": same}, Looks([8]))["v"].verdict == "equal"
    assert decide({"v": same}, Looks([8]), smallest=0.1)["v"].verdict == "equivalent"
    assert decide({"v": same[:1]}, Looks([1 + 1]))["v"].verdict == "undetermined"


def test_diverged_runs_lose_their_pairs_and_are_counted():
    lost = [
        (NAN, base) if i in (1, 4) else (base + 1 + noise, base) for i, (base, noise) in enumerate(zip(BASE, NOISE))
    ]
    survivors = [pair for pair in lost if not math.isnan(pair[0])]
    assert decide({"v": survivors}, Looks([len(survivors)]))["v"].verdict == "better"  # the flattering place
    found = decide({"v": lost}, Looks([8]), largest=20)["v"]
    assert (found.verdict, found.diverged, found.baseline_diverged) == ("undetermined", 2, 0)
    assert found.p == pytest.approx(stats.binomtest(6, 8).pvalue)
    assert found.low == -20  # the metric's end: there is no bound on how bad it was
    always = decide({"v": [(NAN, base) for base in BASE]}, Looks([8]))["v"]
    assert (always.verdict, always.diverged, always.mean) == ("worse", 8, None)
    assert decide({"v": [(base, NAN) for base in BASE]}, Looks([8]))["v"].verdict == "better"
    assert decide({"v": [(NAN, NAN)] * 8}, Looks([8]))["v"].p == 1
    twelve = [*pairs(0), *pairs(0)[:3], (NAN, 10.0)]  # all but one within ±0.3, and so is the interval of the median
    assert decide({"v": twelve}, Looks([12]), smallest=9)["v"].verdict == "undetermined"


def test_the_worst_value_is_the_metrics_own_or_the_worst_there_is():
    values = np.array([0.5, NAN, 0.2, 0.9])
    assert worst_value(values, True, 0.0) == 0
    assert worst_value(values, True, -math.inf) == 0.2
    assert worst_value(values, False, math.inf) == 0.9
    assert math.isnan(worst_value(np.array([NAN]), True, -math.inf))
