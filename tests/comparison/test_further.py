"""Further tests in a comparison: which numbers are compared, for how many the intervals are adjusted, and what is
shown."""

from __future__ import annotations

import csv
import io

import pytest
from scipy import stats
from test_comparison import finish

from paddle_tfm import create_registry
from paddle_tfm.comparison.claims.values import judge_all
from paddle_tfm.comparison.columns import table
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.report.sections.further_tests import Tests, further
from paddle_tfm.comparison.runs.finished import collect
from paddle_tfm.comparison.table import compare
from paddle_tfm.errors import UserError
from paddle_tfm.recipe.sections.claims import ClaimSettings

# variant → test → the value of each seed
VALUES = {
    "base": {"": (0.90, 0.91, 0.93), "beyond": (0.10, 0.12, 0.11), "far": (0.0, 0.01, 0.02)},
    "alibi": {"": (0.91, 0.90, 0.93), "beyond": (0.60, 0.63, 0.60), "far": (0.02, 0.01, 0.0)},
    "shaw": {"": (0.89, 0.92, 0.94), "beyond": (0.30, 0.31, 0.35), "far": (0.01, 0.02, 0.05)},
}


def write(root, values=VALUES, **facts):
    for variant, tests in values.items():
        for seed in range(1, 4):
            scores = {test: {"exact_match": column[seed - 1]} for test, column in tests.items()}
            own = scores.pop("")
            more = {
                test: {"data": test, "texts": f"test@{test}", "examples": 50, "max_rows": None, "padding": 0,
                       "scores": of_test, **facts.get(f"{variant}_{test}", {})}
                for test, of_test in scores.items()
            }  # fmt: skip
            finish(root, variant, seed, own, data="own", tests=more)
    return root


def comparison_of(root, metric="exact_match"):
    return compare(collect([root]), "name", root, metric, "base")


def p_of(variant, test):
    return stats.ttest_rel(VALUES[variant][test], VALUES["base"][test]).pvalue


def test_differences_are_those_of_the_test_and_hold_together(tmp_path):
    said = further(comparison_of(write(tmp_path)))
    assert said.tests == ["beyond", "far"]
    keys = [(test, variant) for test in said.tests for variant in ("alibi", "shaw")]
    assert sorted(said.differences) == sorted(keys)
    raw = {key: p_of(key[1], key[0]) / 0.8 for key in keys}  # a first look
    # Holm over all four: the smallest p times 4, the next times 3, … and never below one before.
    adjusted, least = {}, 0.0
    for place, key in enumerate(sorted(raw, key=raw.__getitem__)):
        least = max(least, min(1.0, raw[key] * (4 - place)))
        adjusted[key] = least
    for key, verdict in said.differences.items():
        ours, base = VALUES[key[1]][key[0]], VALUES["base"][key[0]]
        assert verdict.mean == pytest.approx(sum(a - b for a, b in zip(ours, base)) / 3)
        assert verdict.p == pytest.approx(adjusted[key], rel=1e-6)
    assert said.differences["beyond", "alibi"].verdict == "better"
    assert said.adjusted_for() == "2 variants on 2 tests (Holm)"
    main = comparison_of(tmp_path / "dates")
    assert {row.variant for row in main.rows if row.difference} == {"alibi", "shaw"}  # of its own test, unchanged


def test_the_metric_of_a_further_test_can_decide(tmp_path):
    comparison = comparison_of(write(tmp_path), "exact_match@beyond")
    assert [row.variant for row in comparison.rows] == ["alibi", "shaw", "base"]
    assert comparison.rows[0].mean["exact_match@beyond"] == pytest.approx(sum(VALUES["alibi"]["beyond"]) / 3)
    assert comparison.rows[0].difference.verdict == "better"
    assert (comparison.unit("exact_match@beyond"), comparison.learned) == ("%", "exact_match")
    for metric, sentence in (
        ("exact_match@beyon", "unknown test 'beyon'; did you mean 'beyond'?"),
        ("exact_mach@beyond", "unknown metric 'exact_mach'; did you mean 'exact_match'?"),
    ):
        with pytest.raises(UserError, match=sentence.replace("?", r"\?")):
            comparison_of(tmp_path, metric)


def test_scores_of_all_tests_stand_in_the_table_and_its_csv(tmp_path):
    comparison = comparison_of(write(tmp_path))
    rows = list(csv.DictReader(io.StringIO(table(comparison).csv())))
    assert {row["variant"]: float(row["exact_match@far"]) for row in rows} == {
        name: pytest.approx(sum(tests["far"]) / 3) for name, tests in VALUES.items()
    }
    assert "exact_match@beyond_spread" in rows[0]
    (text,) = [line for line in table(comparison).lines(None) if line[0][0].startswith("variant")]
    assert "exact match@beyond\u00a0↑" in "".join(part for part, _ in text)


def test_runs_of_other_texts_or_other_batches_are_not_compared(tmp_path):
    write(tmp_path, alibi_beyond={"data": "others"}, shaw_far={"max_rows": 1, "drift": 0.0, "changed_outputs": 0})
    said = further(comparison_of(tmp_path))
    assert sorted(said.differences) == [("beyond", "shaw"), ("far", "alibi")]
    assert said.obstacles["beyond", "alibi"].words == "other texts" == said.obstacles["far", "shaw"].words
    section = Tests()
    lines = section.text(Facts(comparison_of(tmp_path), create_registry()))
    assert any("alibi other texts" in line for line in lines)


def test_a_variant_without_the_test_is_said_to_have_none(tmp_path):
    values = {**VALUES, "shaw": {"": VALUES["shaw"][""], "far": VALUES["shaw"]["far"]}}
    said = further(comparison_of(write(tmp_path, values)))
    assert said.obstacles == {("beyond", "shaw"): ("no such test", "“shaw” has no test “beyond”")}


def test_the_section_says_it_for_people_and_for_programs(tmp_path):
    other = {"max_rows": 1, "drift": 0.5, "changed_outputs": 7}
    write(tmp_path, base_far=other, alibi_far={**other, "changed_outputs": 0, "drift": 1e-6}, shaw_far=other)
    facts, section = Facts(comparison_of(tmp_path), create_registry()), Tests()
    assert section.applies(facts)
    lines = "\n".join(section.text(facts))
    assert "alibi +50 points (95%: " in lines and "adjusted for 2 variants on 2 tests" in lines
    assert "far: 21 of 150 outputs of “base” changed, log-probabilities by up to 0.5 nats" in lines
    assert "far: 0 of 150 outputs of “alibi” changed, log-probabilities by up to 1e-06 nats" in lines
    data = section.data(facts)
    assert {(each["test"], each["variant"]) for each in data["differences"]} == {
        (test, variant) for test in ("beyond", "far") for variant in ("alibi", "shaw")
    }
    (base,) = [each for each in data["batches"] if each["variant"] == "base"]
    assert base == {"test": "far", "variant": "base", "changed_outputs": 21, "outputs": 150, "drift": 0.5}
    rows = list(csv.DictReader(io.StringIO(section.tables(facts)["tests-differences"].csv())))
    (alibi,) = [row for row in rows if (row["test"], row["variant"]) == ("beyond", "alibi")]
    assert float(alibi["difference"]) == pytest.approx(0.5) and alibi["verdict"] == "better"
    assert not Tests().applies(Facts(comparison_of(_plain(tmp_path / "plain")), create_registry()))


def _plain(root):
    for variant in ("base", "alibi"):
        finish(root, variant, 1, {"exact_match": 0.5})
    return root


def test_claims_are_judged_on_their_own_test(tmp_path):
    comparison = comparison_of(write(tmp_path))
    common = {"says": "x", "source": "of our own", "metric": "exact_match@beyond", "variant": "alibi"}
    claims = {
        "above": ClaimSettings(**common, over="base", above=30),
        "value": ClaimSettings(**{**common, "metric": "exact_match@far"}, at_least=50),
    }
    judged = judge_all(comparison, claims)
    assert [each.verdict for each in judged.judgements] == ["reproduced", "not reproduced"]
    assert judged.judgements[0].mean == pytest.approx(0.5)
