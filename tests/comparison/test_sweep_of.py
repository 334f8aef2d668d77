"""A comparison of the runs of a sweep is the same one whichever of its folders are named."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from finished_runs import finished, predicted

from paddle_tfm import create_registry
from paddle_tfm.comparison.claims.values import judge_all
from paddle_tfm.comparison.gaps import confounds
from paddle_tfm.comparison.question import Question
from paddle_tfm.comparison.recorded_runs import compare_recorded
from paddle_tfm.comparison.report import paper
from paddle_tfm.comparison.report.section_input import Facts
from paddle_tfm.comparison.report.sections.outputs import Lengths
from paddle_tfm.comparison.report.sections.recipes import Compared
from paddle_tfm.comparison.runs.finished import collect
from paddle_tfm.comparison.table import compare
from paddle_tfm.comparison.verdict import verdict
from paddle_tfm.recipe.sections.claims import ClaimSettings
from paddle_tfm.recipe.sections.seeds import SeedPlan

pytestmark = pytest.mark.reliability

RECIPE = "evaluate: {best: exact_match, metrics: [exact_match, perplexity]}\nsearch: greedy\n"
LOST = "the loss was no number at step 1 (nan)"


def finish(root, variant, seed, value, **more):
    both = {"directions": {"exact_match": True, "perplexity": False}, "units": {"exact_match": "%", "perplexity": ""}}
    scores, folder = {"exact_match": value, "perplexity": 2 - value}, root / variant / f"seed-{seed}"
    finished(folder, variant, seed, scores, **({"tokens": 5000, **both} | more))
    (folder / "identity.json").write_text("{}", "utf-8")
    (folder / "recipe.yaml").write_text(RECIPE, "utf-8")
    (folder / "metrics.jsonl").write_text("", "utf-8")
    return folder


def record(root, baseline, runs=(), **question):
    stored = {"command": ["paddle-tfm", "run", "r"], "runs": list(runs), "baseline": baseline, "question": question}
    (root / "command.json").write_text(json.dumps(stored), "utf-8")


def test_looks_and_baseline_are_those_of_the_sweep_when_only_its_variants_are_named(tmp_path):
    for seed, (base, other) in enumerate(zip((0.50, 0.512, 0.505), (0.525, 0.531, 0.532)), 1):
        finish(tmp_path, "base", seed, base)
        finish(tmp_path, "b", seed, other)
    record(tmp_path, "base", seeds={"at_most": 12, "looks": [3, 5, 8, 12]}, smallest_effect=None)
    whole, parts = compare_recorded([tmp_path]), compare_recorded([tmp_path / "b", tmp_path / "base"])
    assert verdict(whole) == verdict(parts) and parts.baseline == "base"
    assert "cannot tell these apart" in verdict(parts)  # one look at three seeds would call it better
    assert parts.question == whole.question and whole.question.plan.looks == [3, 5, 8, 12]


def test_the_smallest_effect_is_of_the_metric_that_the_recipe_calls_best(tmp_path):
    for seed in (1, 2, 3):
        finish(tmp_path, "base", seed, 0.3 + seed / 1000)
        finish(tmp_path, "b", seed, 0.7 + seed / 999)
    record(tmp_path, "base", seeds=None, smallest_effect=1.0)
    assert compare_recorded([tmp_path]).question.smallest_effect == 1.0
    other = compare_recorded([tmp_path], metric="perplexity")
    assert other.question.smallest_effect is None
    assert next(row for row in other.rows if row.variant == "b").difference.verdict == "better"


def test_a_question_that_no_recipe_can_ask_is_none(tmp_path):
    question = {"seeds": {"at_most": 3, "looks": [1, 1, 1]}, "smallest_effect": 1.0}
    for seed in (1, 2, 3):
        finish(tmp_path, "base", seed, 0.3 + seed / 1000)
        finish(tmp_path, "b", seed, 0.7 + seed / 999)
    file = tmp_path / "command.json"
    file.write_text(json.dumps({"baseline": "base", "question": question}), "utf-8")
    said = []
    assert compare_recorded([tmp_path], warn=said.append).question == Question()
    assert any(f"{file}: damaged: no recipe can ask this `question`: {{" in sentence for sentence in said)


def test_runs_without_their_sweep_are_compared_without_a_word(tmp_path):
    said = []
    assert Question.recorded(tmp_path, said.append) == Question() and said == []


def test_runs_of_one_variant_are_compared_without_paddle(tmp_path):
    """Its import takes seconds; defaults of components, which their classes know, tell variants apart."""
    for seed in (1, 2):
        finish(tmp_path, "base", seed, 0.5)
    code = "import sys; from paddle_tfm.cli import group; group.main(sys.argv[1:], standalone_mode=False)"
    command = [sys.executable, "-c", f"{code}; sys.exit('paddle' in sys.modules)", "compare", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and "the only variant here" in done.stdout, done.stderr


@pytest.mark.parametrize("baseline", ["plain", None])
def test_without_a_recorded_baseline_it_is_the_first_variant_of_the_recipe(tmp_path, baseline):
    for size, matrices in (("s", 10), ("l", 90)):
        for variant in ("alpha", "plain"):
            for seed in (1, 2):
                value = 0.5 + seed / 100 + (variant == "alpha") / 10
                finish(tmp_path, f"{variant}@{size}", seed, value, size=size, matrix_parameters=matrices)
    record(tmp_path, baseline, [f"{variant}@{size}/seed-1" for size in "sl" for variant in ("plain", "alpha")])
    comparison = compare_recorded([tmp_path])
    assert comparison.baseline == "plain@l"
    assert [side.name for side in Facts(comparison, create_registry()).sides()] == ["plain@l", "alpha@l"]


def test_a_run_that_diverges_in_its_first_step_undoes_no_ladder(tmp_path):
    for size, matrices in (("s", 10), ("l", 90)):
        for variant in ("alpha", "plain"):
            for seed in (1, 2, 3):
                dead = {"diverged": LOST, "steps": 0, "tokens": 0} if (variant, size, seed) == ("alpha", "s", 3) else {}
                finish(tmp_path, f"{variant}@{size}", seed, 0.5, size=size, matrix_parameters=matrices, **dead)
    comparison = compare(collect([tmp_path]), "r", tmp_path, "exact_match", "plain")
    assert {row.variant for row in comparison.rows} == {"alpha@l", "plain@l"} and len(comparison.smaller) == 6


def test_predictions_of_a_run_that_diverged_are_no_scores_by_length(tmp_path):
    for seed, right in ((1, True), (2, False)):
        folder = finish(tmp_path, "base", seed, 0.5, diverged=None if right else LOST)
        rows = [("no", " ".join("w" * n), "a", "a" if right else "b", "-1.0") for n in (2, 4) for _ in range(5)]
        predicted(folder, rows)
    facts = Facts(compare(collect([tmp_path]), "r", tmp_path, "exact_match"), create_registry())
    (table,) = Lengths().tables(facts).values()
    assert [table.columns[2].cell(row) for row in table.rows] == ["100.0%", "100.0%"]


def test_a_pair_of_which_one_diverged_before_it_was_tested_counts_against_a_claim(tmp_path):
    for seed in (1, 2, 3):
        tests = {"tests": {"beyond": {"scores": {"exact_match": 0.5}, "data": "one", "examples": 9}}}
        finish(tmp_path, "base", seed, 0.5, **tests)
        finish(tmp_path, "b", seed, 0.9, **({"diverged": LOST, "tests": {}, "test": {}} if seed == 3 else tests))
    comparison = compare(collect([tmp_path]), "r", tmp_path, "exact_match", "base")
    for metric in ("exact_match", "exact_match@beyond"):
        claim = ClaimSettings.model_validate(
            {"says": "B.", "source": "of our own", "metric": metric, "variant": "b", "over": "base", "within": 99}
        )
        (judgement,) = judge_all(comparison, {"c": claim}).judgements
        assert judgement.verdict == "undetermined", metric


# ------------------------------------------------------------------------------------------- what is said of few pairs


def compared(root, values, question=None, metric="exact_match", **diverged):
    """variant → a value a seed, None where the run diverged."""
    for variant, column in values.items():
        for seed, value in enumerate(column, 1):
            lost = {"diverged": LOST, "test": {}, "seconds": 1.0, "tokens": 50} if value is None else {}
            finish(root, variant, seed, 0.0 if value is None else value, **lost)
    return compare(collect([root]), "r", root, metric, "base", question)


def of(comparison, variant):
    return next(row for row in comparison.rows if row.variant == variant)


def test_between_looks_numbers_are_said_to_be_of_the_pairs_that_they_are_of(tmp_path):
    looks = Question(SeedPlan(at_most=8, looks=[3, 5, 8]))
    comparison = compared(tmp_path, {"base": [0.5, 0.5, 0.5, 0.5], "b": [0.70, 0.71, 0.69, 0.1]}, looks)
    assert of(comparison, "b").difference.mean == pytest.approx(0.2)
    assert "3 of 4 seeds, the last look" in verdict(comparison) and "+20 points" in verdict(comparison)


def test_an_interval_of_one_end_is_written(tmp_path):
    values = {"base": [None, 0.3, 0.31, 0.29, 0.3, 0.32], "b": [0.8, 0.82, 0.79, 0.81, 0.8, 0.8]}
    comparison = compared(tmp_path, values, metric="perplexity")
    difference = of(comparison, "b").difference
    assert (difference.low is None) != (difference.high is None)
    assert re.search("95%: (above|below) −0.4[89]", verdict(comparison)), verdict(comparison)


def test_a_variant_that_always_diverges_is_settled_with_the_sixth_seed(tmp_path):
    """Of five signs that are alike a test gives p = .063, of six .031. Who looked after five has .0025 for the next look: ten."""
    five = compared(tmp_path / "five", {"base": [0.5, 0.51, 0.5, 0.52, 0.5], "b": [None] * 5})
    assert of(five, "b").difference.verdict == "undetermined"
    assert "5 seeds cannot tell these apart (likely 5 more seeds)" in verdict(five)
    six = compared(tmp_path / "six", {"base": [0.5, 0.51, 0.5, 0.52, 0.5, 0.5], "b": [None] * 6})
    assert of(six, "b").difference.verdict == "worse"


def test_a_run_that_ended_early_lowers_no_cost(tmp_path):
    comparison = compared(tmp_path, {"base": [0.5, 0.51, 0.5], "b": [0.6, 0.61, None]})
    assert of(comparison, "b").seconds == 60
    facts = Facts(comparison, create_registry())
    base, other = facts.sides()
    assert list(confounds(base, other)) == []
    assert "the test that of signs" in paper.methods(facts)


def test_variants_without_a_common_seed_are_counted_apart(tmp_path):
    compared(tmp_path, {"base": [0.9, 0.91, 0.9], "b": [0.9, 0.91, 0.89]})
    finish(tmp_path, "c", 7, 0.1)
    comparison = compare(collect([tmp_path]), "r", tmp_path, "exact_match", "base")
    text = "of 2 others, 1 is undetermined with 3 seeds, 1 shares no seed with it"
    assert text in verdict(comparison)


def test_the_training_of_the_baseline_is_not_said_to_be_that_of_all(tmp_path):
    comparison = compared(tmp_path, {"base": [0.5, 0.51], "b": [0.6, 0.61]})
    train = "train: {steps: STEPS, max_tokens: 100, schedule: {name: cosine, peak: 0.001}}\n"
    for variant, steps in (("base", "500"), ("b", "700")):
        for file in (tmp_path / variant).glob("*/recipe.yaml"):
            file.write_text(RECIPE + train.replace("STEPS", steps), "utf-8")
    facts = Facts(comparison, create_registry())
    assert "Training of the baseline base: 500 steps" in paper.methods(facts)
    assert "<dt>training of base</dt>" in Compared().html(facts)


def test_runs_that_learn_all_or_nothing_are_named(tmp_path):
    values = {"base": [0.01, 0.97, 0.02, 0.96, 0.98], "b": [0.99, 0.98, 0.97, 0.02, 0.99]}
    few = compared(tmp_path / "few", {name: some[:3] for name, some in values.items()})
    assert "Runs are in two groups, 2 up to 2.0% and 4 from 97.0% on, with some of “base” in both" in verdict(few)
    assert "a t test of 3 seeds may find differences that are not there. Compare how many runs" in verdict(few)
    values["base"] = [0.71, 0.72, 0.7, 0.71, 0.72]  # one run of “b” failed
    five = verdict(compared(tmp_path / "five", values))
    assert "Runs are in two groups, 1 up to 2.0% and 9 from 70.0% on, with some of “b” in both" in five
    looks = Question(SeedPlan(at_most=5, looks=[3, 5]))
    assert "two groups" in verdict(compared(tmp_path / "looks", values, looks))
