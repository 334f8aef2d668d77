"""Claims judged: against SciPy's interval, and by how often the rule is wrong."""

import json
import math

import numpy as np
import pytest
from scipy import stats
from test_comparison import finish, series, table, trained

from paddle_tfm import create_registry
from paddle_tfm.comparison.claims.judge import allowed, judge
from paddle_tfm.comparison.claims.values import gradient_norm, judge_all, recorded_claims
from paddle_tfm.comparison.claims.words import claimed, measured, subject
from paddle_tfm.comparison.report.report import Report
from paddle_tfm.comparison.runs.finished import collect
from paddle_tfm.recipe.sections.claims import ClaimSettings


def page(comparison):
    return Report(comparison, create_registry(), pytest.fail).page()


def claim(**more):
    fixed = {"says": "A is better.", "source": "of our own", "metric": "exact_match", "variant": "a"}
    return ClaimSettings.model_validate(fixed | more)


def t_interval(values):
    return stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))


def test_a_difference_has_scipy_s_interval_and_is_reproduced_where_all_of_it_reaches_the_smallest_effect():
    ones, others = [0.9, 0.85, 0.95, 0.88], [0.5, 0.52, 0.61, 0.44]
    differences = np.subtract(ones, others)
    low, high = t_interval(differences)
    for points, verdict in [(100 * low - 0.1, "reproduced"), (100 * low + 0.1, "undetermined"),
                            (100 * high - 0.1, "undetermined"), (100 * high + 0.1, "not reproduced")]:  # fmt: skip
        judgement = judge("c", claim(over="b", above=points), ones, others, "%")
        assert (judgement.low, judgement.high) == pytest.approx((low, high))
        assert judgement.mean == pytest.approx(differences.mean())
        assert judgement.verdict == verdict, points
    below = judge("c", claim(over="b", below=100 * low - 0.1), others, ones, "%")
    assert below.verdict == "reproduced" and below.high == pytest.approx(-low)


def test_closer_than_x_takes_both_ends_of_the_interval():
    ones, others = [2.01, 1.99, 2.02], [2.0, 2.0, 2.0]
    low, high = t_interval(np.subtract(ones, others))
    end = max(-low, high)
    assert judge("c", claim(over="b", within=end * 1.01), ones, others).verdict == "reproduced"
    assert judge("c", claim(over="b", within=end * 0.99), ones, others).verdict == "undetermined"
    assert judge("c", claim(over="b", within=0.1), [3.0, 3.1, 3.2], others).verdict == "not reproduced"


def test_ratios_and_percentages_are_geometric_means():
    ones, others = [8.0, 12.0, 9.0], [2.0, 2.5, 3.0]
    low, high = np.exp(t_interval(np.log(np.divide(ones, others))))
    ratio = judge("c", claim(over="b", measure="ratio", at_least=low * 0.99), ones, others)
    assert (ratio.low, ratio.mean, ratio.high) == pytest.approx((low, stats.gmean(np.divide(ones, others)), high))
    assert ratio.verdict == "reproduced"
    assert judge("c", claim(over="b", measure="ratio", at_least=high * 1.01), ones, others).verdict == "not reproduced"
    for percent, verdict in [(100 * (low - 1) - 1, "reproduced"), (100 * (low - 1) + 1, "undetermined")]:
        assert judge("c", claim(over="b", measure="percent", above=percent), ones, others).verdict == verdict
    assert "%" in measured(judge("c", claim(over="b", measure="percent", above=1), ones, others))


def test_a_value_that_is_0_with_every_seed_is_exactly_0():
    at_most = claim(at_most=0)
    assert judge("c", at_most, [0.0, 0.0, 0.0], None, "%").verdict == "reproduced"
    assert judge("c", at_most, [0.2, 0.3, 0.25], None, "%").verdict == "not reproduced"
    assert judge("c", claim(at_least=95, at_most=100), [0.99, 0.98, 1.0], None, "%").verdict == "undetermined"
    assert judge("c", claim(at_least=90), [0.99, 0.98, 1.0], None, "%").verdict == "reproduced"


@pytest.mark.parametrize("ones", [[0.9], [0.9, 0.91, math.nan], [math.nan, math.nan]])
def test_one_seed_and_diverged_runs_determine_nothing(ones):
    judgement = judge("c", claim(over="b", above=1), ones, [0.1, 0.12, 0.11][: len(ones)], "%")
    assert judgement.verdict == "undetermined"
    assert judgement.lost == sum(map(math.isnan, ones))
    assert ("diverged" in measured(judgement)) == bool(judgement.lost)


def test_a_direction_alone_is_not_reproduced_by_equal_values():
    direction = claim(over="b", above=0)
    assert judge("c", direction, [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]).verdict == "not reproduced"
    assert judge("c", direction, [1.5, 2.4, 3.6], [1.0, 2.0, 3.0]).verdict == "reproduced"


@pytest.mark.parametrize(
    "limits, truth, wrong, most",
    [
        ({"above": 0.5}, 0.5 - 1e-9, "reproduced", 0.025),
        ({"above": 0.5}, 0.5, "not reproduced", 0.025),
        ({"within": 1.0}, 1.0, "reproduced", 0.025),
        ({"within": 1.0}, 0.999, "not reproduced", 0.05),
    ],
)
def test_a_wrong_verdict_is_rare(limits, truth, wrong, most):
    """At the border of what is claimed, where a wrong verdict is most frequent: 4,000 repetitions of 4 seeds."""
    draws = np.random.default_rng(7).normal(truth, 0.5, (4000, 4))
    half = stats.t.ppf(0.975, 3) * draws.std(1, ddof=1) / 2
    bounds = allowed(claim(over="b", **limits))
    says = bounds.hold if wrong == "reproduced" else bounds.exclude
    rate = np.mean([says(mean - end, mean + end) for mean, end in zip(draws.mean(1), half)])
    assert rate <= most + 3 * math.sqrt(most * (1 - most) / 4000)
    sample = [judge("c", claim(over="b", **limits), row.tolist(), [0.0] * 4).verdict == wrong for row in draws[:50]]
    assert sample == [says(mean - end, mean + end) for mean, end in zip(draws.mean(1)[:50], half[:50])]


@pytest.mark.parametrize("unlike", ["a", "b"])
def test_runs_that_differ_in_more_than_their_seeds_prove_nothing(unlike, tmp_path):
    for name, values in (("a", [0.9, 0.85, 0.95]), ("b", [0.5, 0.52, 0.61])):
        for seed, value in enumerate(values, 1):
            trained(finish(tmp_path, name, seed, {"exact_match": value}), seed, f"lr: {seed > 1 and name == unlike}\n")
    (judgement,) = judge_all(table(tmp_path, baseline="b"), {"c": claim(over="b", above=1)}).judgements
    assert (judgement.verdict, judgement.mean) == ("undetermined", None)
    assert measured(judgement) == "no value: the runs differ in more than their seeds"


def test_words():
    of_shares = claim(over="b", above=20)
    assert subject(of_shares) == "exact match of a against b" and claimed(of_shares, "%") == "at least 20 points above"
    judgement = judge("c", of_shares, [0.9, 0.8, 0.85], [0.2, 0.3, 0.1], "%")
    assert measured(judgement) == "+65 points (95%: +32 to +98), 3 seeds"
    assert claimed(claim(at_most=0), "%") == "at most 0%"
    assert (
        claimed(claim(over="b", measure="ratio", at_least=0.9, at_most=1.1))
        == "at least 0.9 times and at most 1.1 times"
    )
    assert claimed(claim(over="b", measure="percent", within=1)) == "less than 1% apart"
    gradient = claim(metric="gradient_norm", at="decoder.layers.-1", divided_by="decoder.layers.0", at_most=2)
    assert subject(gradient) == "gradient norm at decoder.layers.-1 divided by that at decoder.layers.0 of a"


def test_a_gradient_norm_is_joint_over_what_lies_below_a_path(tmp_path):
    folder = finish(tmp_path, "a", 1, {"exact_match": 0.5})
    norms = {"decoder.layers.1.x": 9.0, "decoder.layers.10.x": 3.0, "decoder.layers.10.y": 4.0, "decoder.other": 7.0}
    rows = [{"step": 0, "evaluation": {}}, {"step": 1, "gradient_norms": norms}, {"step": 2}]
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    (run,) = collect([folder])
    assert gradient_norm(run, "decoder.layers.-1") == 5.0
    assert gradient_norm(run, "decoder.layers.1") == 9.0
    assert gradient_norm(run, "decoder.layers.-1.y") == 4.0
    assert math.isnan(gradient_norm(run, "decoder.layer"))


def test_claims_are_paired_by_seed_stand_in_the_report_and_are_judged_again(tmp_path):
    series(tmp_path, "a", [0.9, 0.8, 0.85])
    series(tmp_path, "b", [0.2, 0.1, 0.15])
    comparison = table(tmp_path, baseline="b")
    claims = {"a-<is>-better": claim(over="b", above=60, source="arXiv:2002.04745, table 1")}
    comparison.claims = judge_all(comparison, claims)
    assert comparison.claims.judgements[0].verdict == "reproduced"  # every pair differs by 70 points
    html = page(comparison)
    assert 'id="claims"' in html and "a-&lt;is&gt;-better" in html and "https://arxiv.org/abs/2002.04745" in html
    file = tmp_path / "comparison.json"
    file.write_text(json.dumps(comparison.data()), "utf-8")
    assert comparison.data()["claims"][0]["verdict"] == "reproduced"
    assert recorded_claims(comparison, tmp_path).judgements == comparison.claims.judgements

    comparison.claims = judge_all(comparison, claims, ["--fast"])
    assert comparison.claims.judgements[0].verdict == "no verdict"
    assert "Trained with --fast" in page(comparison)
    file.write_text(json.dumps(comparison.data()), "utf-8")
    assert recorded_claims(comparison, tmp_path).departures == ("--fast",)
    comparison.claims = None
    assert 'id="claims"' not in page(comparison) and "claims" not in comparison.data()
    for damaged in ('{"claims": [{"name": "x"}]}', "{"):
        file.write_text(damaged, "utf-8")
        assert recorded_claims(comparison, tmp_path) is None
