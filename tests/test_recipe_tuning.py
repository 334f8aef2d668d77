"""Tuning in a recipe: what may be wrong with it, and which runs it has."""

import pytest
from recipe_text import load_text

from paddle_tfm import create_registry
from paddle_tfm.errors import RecipeError
from paddle_tfm.recipe import loading
from paddle_tfm.recipe.sections.trials import planned
from paddle_tfm.sweep.check import check

HEAD = """\
base: base.yaml
name: mine
summary: mine
variants: {a: {}, b: {model.norm: {name: none}}, c: {train.schedule: {name: inverse_sqrt, peak: 0.01}}}
tune:
"""
PEAK = "train.schedule.peak: {log: [3e-4, 1e-2]}"


def two(tmp_path, space="{train.schedule.peak: {log: [3e-4, 1e-2]}}", more="trials: 4", overrides=(), after=""):
    head = HEAD.replace(", c: {train.schedule: {name: inverse_sqrt, peak: 0.01}}", "")
    return load_text(tmp_path, f"{head}  space: {space}\n  {more}\n{after}", overrides)


def problem(recipe):
    """The only one, found before anything is trained."""
    with pytest.raises(RecipeError) as caught:
        check(recipe, create_registry(), step=False)
    (line,) = str(caught.value).splitlines()[1:]
    return " ".join(line.split())


@pytest.mark.parametrize(
    ("space", "more", "sentence"),
    [
        ("{}", "trials: 4", "line 6 tune.space names no setting; as in `tune: {space: {train.schedule.peak: {log: [3e-4, 1e-2]}}, trials: 12}`"),
        ("{train.schedule.peak: [1e-3, 2e-3]}", "trials: 4", "line 6 tune.space has 2 points, but `trials` is 4, and no point is"),
        ("{PEAK}", "trials: 4\n  widen: -1", "line 8 tune.widen must be greater than or equal to 0, but is -1"),
        ("{PEAK}", "trials: 4\n  trails: 4", "line 8 tune.trails unknown key 'trails'; did you mean 'trials'?"),
        ("{PEAK}", "steps: 4", "line 5 tune.trials is missing; as in `tune: {space: {train.schedule.peak: {log: [3e-4, 1e-2]}}, trials: 12}`"),
        ("{PEAK}", "trials: 4\n  seed: 1", "line 8 tune.seed 1 is among `seeds`, and a seed that chose the values reports too well"),
        ("{PEAK}", "trials: 4\n  steps: 3\n  halving: 2", "line 9 tune.halving begins with fewer than 1 of 3 steps; halve fewer"),
        ("{train.stepps: [1, 2, 3, 4]}", "trials: 4", "line 6 train.stepps unknown key 'stepps'; did you mean 'steps'?"),
        ("{train.schedule.warmup: [1, 2, 3, -1]}", "trials: 4", "line 6 train.schedule 'inverse_sqrt' refuses: `warmup` must be positive, as every rate is 0 without, but is -1"),
        ("{model.dropout: {linear: [0.5, 1.5]}}", "trials: 4", "line 6 model.dropout must be less than 1, but is"),
        ("{train.steps: [100, 200, 300, 400]}", "trials: 4", "line 6 tune.space.train.steps is the budget, which is equal for all"),
        ("{evaluate.best: [loss, exact_match]}", "trials: 2", "line 6 tune.space.evaluate.best cannot be tuned: settings of `model` and"),
        ("{seeds: [1, 2]}", "trials: 2", "line 6 tune.space.seeds cannot be tuned"),
        ("{train.schedule: [noam, cosine], train.schedule.peak: [1, 2]}", "trials: 4", "line 6 tune.space.train.schedule.peak stands within train.schedule"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_tuning_is_said_in_a_sentence(tmp_path, space, more, sentence):
    found = problem(two(tmp_path, space.replace("PEAK", PEAK), more))
    assert found.startswith(sentence), found


def test_a_variant_that_sets_what_is_tuned_is_refused(tmp_path):
    found = problem(load_text(tmp_path, f"{HEAD}  space: {{{PEAK}}}\n  trials: 4\n"))
    says = "line 6 tune.space.train.schedule.peak variant 'c' sets train.schedule.peak itself, and the space would undo that"
    assert found.startswith(says)


def test_a_setting_that_one_variant_lacks_is_refused(tmp_path):
    found = problem(two(tmp_path, "{model.norm.eps: [1e-6, 1e-5]}", "trials: 2"))
    assert found.startswith("line 6 model.norm.eps 'none' has no option 'eps'")


def test_every_variant_measures_what_decides(tmp_path):
    text = HEAD.replace(
        "c: {train.schedule: {name: inverse_sqrt, peak: 0.01}}", "c: {evaluate: {metrics: [chrf], best: loss}}"
    )
    found = problem(load_text(tmp_path, f"{text}  space: {{{PEAK}}}\n  trials: 4\n"))
    assert found == "line 5 tune variant 'c' does not measure 'exact_match', by which trials are chosen"


def test_the_folder_of_trials_is_no_variant(tmp_path):
    text = HEAD.replace("{a: {}", "{tuning: {}").replace(", c: {train.schedule: {name: inverse_sqrt, peak: 0.01}}", "")
    found = problem(load_text(tmp_path, f"{text}  space: {{{PEAK}}}\n  trials: 4\n"))
    assert found.startswith("line 4 variants.tuning 'tuning' is the folder of the trials")


def test_seeds_may_be_added_where_variants_are_tuned(tmp_path):
    recipe = two(tmp_path, more="trials: 4\n  untuned: true", after="seeds: {at_most: 5, looks: [3, 5]}\n")
    assert len(check(recipe, create_registry(), step=False)) == 2 * 5
    assert len(planned(recipe)) == 2 * (4 + 5 + 5)


def test_trials_are_alike_for_all_variants_and_their_seed_is_not_reported(tmp_path):
    recipe = two(tmp_path, after="seeds: [1, 2]\n", more="trials: 4\n  steps: 50\n  untuned: true")
    runs = planned(recipe)
    trials = [run for run in runs if run.is_trial]
    assert [run.name for run in trials] == [f"tuning/{v}/trial-0{n}" for n in range(1, 5) for v in "ab"]
    peaks = {v: [run.data["train"]["schedule"]["peak"] for run in trials if run.variant == v] for v in "ab"}
    assert peaks["a"] == peaks["b"] and all(3e-4 <= peak <= 1e-2 for peak in peaks["a"])
    assert {run.seed for run in trials} == {0} and {run.steps for run in trials} == {50}
    assert {str(run.data["seeds"]) for run in trials} == {"[0]"}
    others = [run for run in runs if not run.is_trial]
    assert [run.name for run in others[4:]] == ["a/seed-1", "b/seed-1", "a/seed-2", "b/seed-2"]
    assert [run.name for run in others[:4]] == [f"tuning/{v}/untuned-seed-{s}" for s in (1, 2) for v in "ab"]
    # Both are of the recipe's own values, and know nothing of tuning.
    assert [run.data for run in others[:4]] == [run.data for run in others[4:]] == [run.data for run in recipe.runs()]
    assert not any("tune" in run.data for run in runs)


def test_trials_that_are_halved_begin_with_few_steps(tmp_path):
    runs = planned(two(tmp_path, more="trials: 9\n  steps: 90\n  halving: 3"))
    counts = {
        steps: sum(run.steps == steps and run.variant == "a" for run in runs if run.is_trial) for steps in (10, 30, 90)
    }
    assert counts == {10: 9, 30: 3, 90: 1}
    assert runs[0].name == "tuning/a/trial-01-steps-10"


def test_it_is_set_on_the_command_line_left_out_by_a_base_and_smaller_when_fast(tmp_path):
    recipe = two(tmp_path, overrides=["tune.trials=2"], after="fast: {tune.trials: 3, tune.widen: 0, train.steps: 9}\n")
    assert recipe.tune().trials == 2 and recipe.tune().space == {"train.schedule.peak": {"log": [3e-4, 1e-2]}}
    fast = loading.load(str(tmp_path / "mine.yaml"), fast=True)
    assert (fast.tune().trials, fast.tune().widen) == (3, 0)
    whole = loading.load(str(tmp_path / "mine.yaml"), ["tune.space={model.dropout: [0.0, 0.1]}", "tune.trials=2"])
    assert whole.tune().space == {"model.dropout": [0.0, 0.1]} and not whole.expand()[1]
    assert loading.load(str(tmp_path / "mine.yaml"), ["tune=null"]).tune() is None
    (tmp_path / "other.yaml").write_text("base: mine.yaml\nname: other\nvariants: {a: {}, d: {}}\n", "utf-8")
    assert loading.load(str(tmp_path / "other.yaml")).tune() is None
